// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Descriptions of how processes end, and exit statuses.
#pragma once

#include "base/result.h"

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>

namespace diomp::run {

/// How a process ended.
struct exit_info {
    int code = 0;   ///< exit status, if not killed by a signal
    int signal = 0; ///< signal that killed the process, or 0
    bool core_dumped = false;
    std::string reason{}; ///< reason for the signal, if known

    [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
    /// Returns the exit status as a shell reports it: 128 + signal if killed.
    [[nodiscard]] int status() const { return signal != 0 ? 128 + signal : code; }
};

/// Returns how the process has ended, nullopt if it has not. The process stays a zombie, so that
/// its process id and group id are not reused.
std::optional<exit_info> peek_exit(pid_t pid);

/// Returns "SIGSEGV", or "signal 44" for a signal without a name.
std::string signal_name(int signal);
/// Returns "was killed by signal 11 (SIGSEGV, Segmentation fault; core dumped)", or "exited with
/// status 3".
std::string describe(const exit_info &how);
/// Returns the message of an error with its remedy, if it has one.
std::string describe(const error &why);

} // namespace diomp::run
