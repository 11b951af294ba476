// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "watched_process.h"

#include "launch/openmp_files.h"

#include <cerrno>
#include <csignal>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace diomp::run {

status watched_process::start(const spawn_request &request) {
    auto spawned = spawn(request);
    DIOMP_TRY(spawned);
    process_ = spawned.take();
    return {};
}

status watched_process::watch(event_loop &loop, std::function<void()> on_exit) {
    // By syscall(): glibc 2.36 declares pidfd_open() with C++ linkage.
    pidfd_ = unique_fd(static_cast<int>(syscall(SYS_pidfd_open, pid(), 0)));
    if (!pidfd_) {
        return system_error("pidfd_open", errno);
    }
    auto token = loop.add(pidfd_.get(), EPOLLIN,
                          [on_exit = std::move(on_exit)](std::uint32_t) { on_exit(); });
    DIOMP_TRY(token);
    loop_ = &loop;
    token_ = token.value();
    return {};
}

void watched_process::unwatch() {
    if (loop_ != nullptr) {
        loop_->remove(token_);
    }
    pidfd_.reset();
}

std::optional<exit_info> watched_process::exit() const {
    return pid() > 0 ? peek_exit(pid()) : std::nullopt;
}

void watched_process::signal_group(int signal) const {
    if (pid() > 0) {
        ::kill(-pid(), signal);
    }
}

std::optional<error> watched_process::reap() {
    launch::reap_child(pid());
    return std::exchange(process_, spawned_process()).start_failure();
}

} // namespace diomp::run
