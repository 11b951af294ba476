// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The signals that are ignored when a process of diomp-run starts. nohup, and shells without job
// control for background jobs, ignore signals for what they start; that stays so for diomp-run
// itself, its agents, services and ranks.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

namespace diomp {

/// Mask and ignored signals of this process, as its parent left them.
class original_signals {
public:
    /// Of a process that has neither changed its mask nor a disposition yet.
    static original_signals of_this_process();

    [[nodiscard]] bool ignores(int signal) const { return sigismember(&ignored_, signal) == 1; }
    /// In a child before exec: as the parent of diomp-run left them. System calls only.
    void restore_dispositions() const;
    void restore_mask() const;

    /// Numbers of the ignored signals, with commas; "" if there are none.
    [[nodiscard]] std::string ignored_list() const;

private:
    sigset_t mask_{};
    sigset_t ignored_{};
};

/// Ignores signals of ignored_list() in this process: a remote shell does not pass that on. Words
/// that are no signal numbers are passed over.
void ignore_signals(std::string_view list);

} // namespace diomp
