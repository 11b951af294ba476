// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/service_thread.h"

#include "base/log.h"

#include <fmt/format.h>

#include <cstdlib>

namespace diomp {

void end_without_thread(const char *name, const std::system_error &why) noexcept {
    write_log(
        log_level::error,
        fmt::format("the system starts no further thread ({}): {} [remedy: raise the number of "
                    "processes and threads of this user (ulimit -u) or of the container]",
                    name, why.code().message()));
    std::_Exit(EXIT_FAILURE);
}

} // namespace diomp
