// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether a rank handles SIGUSR1 and SIGUSR2 itself.
#pragma once

#include <string_view>

namespace diomp::run {

struct rank_process;

/// Returns whether the signal is SIGUSR1 or SIGUSR2, would end the rank, and the rank can print its
/// stacks. False if the kernel does not tell: the rank then gets the signal.
[[nodiscard]] bool shows_stacks_at(int signal, const rank_process &rank);

/// Returns whether a process with this /proc/PID/status would be ended by the signal: it neither
/// catches, ignores nor blocks it.
[[nodiscard]] bool would_end(std::string_view process_status, int signal);

} // namespace diomp::run
