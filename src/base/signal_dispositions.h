// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The signals that are ignored when a process of diomp-run starts. nohup, and shells without job
// control for background jobs, ignore signals in the processes that they start; this stays so for
// diomp-run itself, its agents, services and ranks.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

namespace diomp {

/// Mask and ignored signals of this process, as its parent left them.
class original_signals {
public:
    /// Call before the process changes its mask or a disposition.
    static original_signals of_this_process();

    [[nodiscard]] bool ignores(int signal) const { return sigismember(&ignored_, signal) == 1; }
    /// In a child before exec: restores the dispositions that the parent of diomp-run has set.
    /// System calls only.
    void restore_dispositions() const;
    void restore_mask() const;

    /// Numbers of the ignored signals, separated by commas; "" if there are none.
    [[nodiscard]] std::string ignored_list() const;

private:
    sigset_t mask_{};
    sigset_t ignored_{};
};

/// Ignores the signals of an ignored_list() in this process: a remote shell does not inherit them.
/// Words that are not signal numbers are skipped.
void ignore_signals(std::string_view list);

} // namespace diomp
