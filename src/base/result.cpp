// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace diomp {

error system_error(std::string what, int errno_value, std::string remedy) {
    std::string text = std::move(what) + ": " + std::generic_category().message(errno_value);
    if (remedy.empty() && errno_value == EMFILE) {
        remedy = "raise the limit on open files (ulimit -n)";
    }
    return {OMPX_ERR_SYSTEM, std::move(text), std::move(remedy)};
}

} // namespace diomp
