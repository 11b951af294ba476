// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pipes between diomp-run and what it starts.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace diomp::run {

/// Both close on exec, and block.
struct pipe_ends {
    unique_fd reading;
    unique_fd writing;
};
result<pipe_ends> open_pipe();

/// For our end of a pipe; the flags of the other end are its own.
status stop_blocking(const unique_fd &end);

} // namespace diomp::run
