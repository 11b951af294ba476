// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "own_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {
namespace {

constexpr std::array<int, 9> watched_signals{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                             SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

} // namespace

rlimit raise_open_files(std::size_t wanted) {
    rlimit original{};
    getrlimit(RLIMIT_NOFILE, &original);
    rlimit raised = original;
    raised.rlim_cur = std::min<rlim_t>(raised.rlim_max, std::max<rlim_t>(raised.rlim_cur, wanted));
    setrlimit(RLIMIT_NOFILE, &raised);
    return original;
}

std::string own_program() {
    std::error_code failure;
    auto const path = std::filesystem::read_symlink("/proc/self/exe", failure);
    return failure ? std::string("diomp-run") : path.string();
}

result<std::unique_ptr<signal_port>> signal_port::create(event_loop &loop,
                                                         const handler &on_signal) {
    std::unique_ptr<signal_port> port(new signal_port(loop));
    port->original_ = original_signals::of_this_process();
    sigset_t watched;
    sigemptyset(&watched);
    for (int const signal : watched_signals) {
        // A blocked signal would be an event even if it is ignored.
        if (signal == SIGCHLD || !port->original_.ignores(signal)) {
            sigaddset(&watched, signal);
        }
    }
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, nullptr); // if it is ignored, the kernel reaps children by itself
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr); // write() returns an error instead
    sigaction(SIGXFSZ, &action, nullptr); // write() returns an error instead
    port->signals_ = unique_fd(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!port->signals_) {
        return system_error("signalfd", errno);
    }
    auto token =
        loop.add(port->signals_.get(), EPOLLIN, [self = port.get(), on_signal](std::uint32_t) {
            signalfd_siginfo info{};
            while (read(self->signals_.get(), &info, sizeof info) == sizeof info) {
                on_signal(info);
            }
        });
    DIOMP_TRY(token);
    port->token_ = token.value();
    return port;
}

} // namespace diomp::run
