// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Set-up of diomp-run's own process: descriptors, limits, signals.
#pragma once

#include "base/signal_dispositions.h"
#include "event_loop.h"

#include <string>
#include <sys/resource.h>
#include <sys/signalfd.h>

namespace diomp::run {

/// Raises the limit of open descriptors to `wanted`, or to the hard limit. Returns the old limits.
rlimit raise_open_files(std::size_t wanted);

/// Returns the path of this program.
[[nodiscard]] std::string own_program();

/// Delivers the signals that diomp-run handles as events of the loop. Signals that were ignored
/// when diomp-run was started stay ignored. SIGPIPE and SIGXFSZ are always ignored, SIGCHLD never.
class signal_port {
public:
    using handler = std::function<void(const signalfd_siginfo &)>;
    static result<std::unique_ptr<signal_port>> create(event_loop &loop, const handler &on_signal);
    ~signal_port() { loop_.remove(token_); }
    signal_port(const signal_port &) = delete;
    signal_port &operator=(const signal_port &) = delete;

    /// Returns the original dispositions, for processes that are started.
    [[nodiscard]] const original_signals &original() const { return original_; }

private:
    explicit signal_port(event_loop &loop) : loop_(loop) {}

    event_loop &loop_;
    original_signals original_;
    unique_fd signals_;
    event_loop::token token_ = event_loop::token::none;
};

} // namespace diomp::run
