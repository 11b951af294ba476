// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipe.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace diomp::run {

result<pipe_ends> open_pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return system_error("pipe2", errno);
    }
    return pipe_ends{unique_fd(ends[0]), unique_fd(ends[1])};
}

status stop_blocking(const unique_fd &end) {
    if (fcntl(end.get(), F_SETFL, O_NONBLOCK) != 0) {
        return system_error("fcntl", errno);
    }
    return {};
}

} // namespace diomp::run
