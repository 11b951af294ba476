// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Broken invariants of our own end the process. Misuse by the program is never a panic but a
// result.
#pragma once

#include <string_view>

namespace diomp {

/// Prints the message and where it came from, then aborts. Any thread.
[[noreturn]] void panic(std::string_view message, const char *file = __builtin_FILE(),
                        int line = __builtin_LINE()) noexcept;

} // namespace diomp
