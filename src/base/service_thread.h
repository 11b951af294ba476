// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <pthread.h>
#include <thread>
#include <utility>

namespace diomp {

/// Starts a thread of the runtime with all signals blocked, so that the program's own threads get
/// them. `name` has at most 15 characters and is shown by debuggers and `top -H`.
template <typename Body>
std::thread start_service_thread(const char *name, Body body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread started([name, body = std::move(body)]() mutable {
        pthread_setname_np(pthread_self(), name);
        body();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

} // namespace diomp
