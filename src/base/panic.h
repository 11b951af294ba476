// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Violated internal invariants end the process. Misuse by the program is never a panic but returns
// a result.
#pragma once

#include <string_view>

namespace diomp {

/// Prints the message and its source location, then aborts. Any thread.
[[noreturn]] void panic(std::string_view message, const char *file = __builtin_FILE(),
                        int line = __builtin_LINE()) noexcept;

} // namespace diomp
