// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks of invariants in builds for development: the option DIOMP_ASSERTS, on in the presets dev
// and sanitize. For what only a defect of the runtime can break; misuse by the program and failures
// of the system are results (base/result.h), which are checked in every build.
#pragma once

#include "base/panic.h"

namespace diomp {

#if defined(DIOMP_ASSERTS)
inline constexpr bool has_asserts = true;
#else
inline constexpr bool has_asserts = false;
#endif

} // namespace diomp

/// Ends the process with the condition, a sentence that says what should hold, and the place, if
/// the condition is false. The condition has no side effects: without DIOMP_ASSERTS it is compiled
/// and not evaluated.
#define DIOMP_ASSERT(condition, sentence)                                                          \
    do {                                                                                           \
        if constexpr (::diomp::has_asserts) {                                                      \
            if (bool const is_true = static_cast<bool>(condition); !is_true) [[unlikely]] {        \
                ::diomp::panic("not true: " #condition "; " sentence);                             \
            }                                                                                      \
        }                                                                                          \
    } while (false)
