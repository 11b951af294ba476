// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Warnings of ours as strict as the compiler's own.
#ifndef DIOMP_PRAGMA_MESSAGES_H
#define DIOMP_PRAGMA_MESSAGES_H

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/LangOptions.h>

namespace diomp::pragma {

/// The compiler does not apply -Werror and -w to messages of plugins. And what the host's pass has
/// said need not be said again in a device's.
inline clang::DiagnosticsEngine::Level warning_level(const clang::DiagnosticsEngine &diagnostics,
                                                     const clang::LangOptions &options) {
    if (diagnostics.getIgnoreAllWarnings() || options.OpenMPIsTargetDevice) {
        return clang::DiagnosticsEngine::Ignored;
    }
    return diagnostics.getWarningsAsErrors() ? clang::DiagnosticsEngine::Error
                                             : clang::DiagnosticsEngine::Warning;
}

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_MESSAGES_H
