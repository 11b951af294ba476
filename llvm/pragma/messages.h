// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes the plugin's warnings as strict as the compiler's own.
#ifndef DIOMP_PRAGMA_MESSAGES_H
#define DIOMP_PRAGMA_MESSAGES_H

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/LangOptions.h>

namespace diomp::pragma {

/// The compiler does not apply -Werror and -w to messages of plugins. Messages of the host's pass
/// are not repeated in a device's pass.
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
