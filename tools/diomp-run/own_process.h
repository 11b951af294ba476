// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What diomp-run does to its own process before anything else: descriptors, limits, signals.
#pragma once

#include "base/signal_dispositions.h"
#include "event_loop.h"

#include <string>
#include <sys/resource.h>
#include <sys/signalfd.h>

namespace diomp::run {

/// Allows for `wanted` open descriptors where the hard limit does. The limits as they were.
rlimit raise_open_files(std::size_t wanted);

/// The path of this program.
[[nodiscard]] std::string own_program();

/// The signals that diomp-run acts on, as events of the loop, unless they were ignored when it was
/// started: then they stay so. SIGPIPE and SIGXFSZ are ignored here, SIGCHLD is not, whatever they
/// were.
class signal_port {
public:
    using handler = std::function<void(const signalfd_siginfo &)>;
    static result<std::unique_ptr<signal_port>> create(event_loop &loop, const handler &on_signal);
    ~signal_port() { loop_.remove(token_); }
    signal_port(const signal_port &) = delete;
    signal_port &operator=(const signal_port &) = delete;

    /// For processes that are started.
    [[nodiscard]] const original_signals &original() const { return original_; }

private:
    explicit signal_port(event_loop &loop) : loop_(loop) {}

    event_loop &loop_;
    original_signals original_;
    unique_fd signals_;
    event_loop::token token_ = event_loop::token::none;
};

} // namespace diomp::run
