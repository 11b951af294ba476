// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

namespace diomp {

/// Says why the system starts no thread, and what to do, and ends the process: the runtime cannot
/// do without.
[[noreturn]] void end_without_thread(const char *name, const std::system_error &why) noexcept;

/// Starts a thread of the runtime with all signals blocked, so that the program's own threads get
/// them. `name` has at most 15 characters and is shown by debuggers and `top -H`. Ends the process
/// if the system starts no further thread.
template <typename Body>
std::thread start_service_thread(const char *name, Body body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread started;
    try {
        started = std::thread([name, body = std::move(body)]() mutable {
            pthread_setname_np(pthread_self(), name);
            body();
        });
    } catch (const std::system_error &why) {
        end_without_thread(name, why);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

} // namespace diomp
