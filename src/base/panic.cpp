// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/panic.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace diomp {

void panic(std::string_view message, const char *file, int line) noexcept {
    fmt::print(stderr, "diomp: internal error at {}:{}: {}\n", file, line, message);
    std::fflush(stderr);
    std::abort();
}

} // namespace diomp
