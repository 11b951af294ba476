// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How processes end, in words and as exit statuses.
#pragma once

#include "base/result.h"

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>

namespace diomp::run {

/// How a process ended.
struct exit_info {
    int code = 0;   ///< exit status, if it was not killed
    int signal = 0; ///< or the signal that killed it
    bool core_dumped = false;
    std::string reason{}; ///< of the signal, where it is known

    [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
    /// As the shell gives it: 128 + signal if killed.
    [[nodiscard]] int status() const { return signal != 0 ? 128 + signal : code; }
};

/// Whether the process has ended, and how. It stays a zombie, so that its number and its group's
/// are not used again.
std::optional<exit_info> peek_exit(pid_t pid);

/// "SIGSEGV", or "signal 44" for one without a name.
std::string signal_name(int signal);
/// "was killed by signal 11 (SIGSEGV, Segmentation fault; core dumped)", "exited with status 3".
std::string describe(const exit_info &how);
/// What went wrong, and what to do about it where that is known.
std::string describe(const error &why);

} // namespace diomp::run
