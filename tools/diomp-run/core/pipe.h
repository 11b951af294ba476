// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pipes between diomp-run and the processes that it starts.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace diomp::run {

/// The two ends of a pipe: close-on-exec, in blocking mode.
struct pipe_ends {
    unique_fd reading;
    unique_fd writing;
};
result<pipe_ends> open_pipe();

/// Sets one end of a pipe to non-blocking mode; the other end is not changed.
status stop_blocking(const unique_fd &end);

} // namespace diomp::run
