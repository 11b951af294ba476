// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/node_watch.h"

#include "base/service_thread.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace diomp::transport {

unique_fd open_process(pid_t pid) {
    return unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_process_descriptors() { return open_process(::getpid()).valid(); }

result<std::unique_ptr<node_watch>> node_watch::create(std::span<const peer_process> others) {
    unique_fd stop(::eventfd(0, EFD_CLOEXEC));
    if (!stop.valid()) {
        return system_error("eventfd", errno);
    }
    std::unique_ptr<node_watch> made(new node_watch(std::move(stop)));
    for (peer_process const &each : others) {
        unique_fd process = open_process(each.pid);
        if (!process.valid()) {
            return system_error(fmt::format("opening process {} of rank {} on this host", each.pid,
                                            each.rank.value()),
                                errno);
        }
        made->others_.push_back({each.rank, std::move(process)});
    }
    return made;
}

node_watch::~node_watch() {
    std::uint64_t const one = 1;
    static_cast<void>(::write(stop_.get(), &one, sizeof one));
    if (thread_.joinable()) {
        thread_.join();
    }
}

void node_watch::add(world_rank other, unique_fd process) {
    others_.push_back({other, std::move(process)});
}

bool node_watch::has_ended(world_rank peer) const {
    auto const found = std::ranges::find(others_, peer, &watched::rank);
    if (found == others_.end()) {
        return false;
    }
    pollfd state{.fd = found->process.get(), .events = POLLIN, .revents = 0};
    return ::poll(&state, 1, 0) > 0;
}

void node_watch::start(std::function<void(world_rank, std::string)> report) {
    thread_ =
        start_service_thread("diomp-watch", [this, report = std::move(report)] { run(report); });
}

void node_watch::run(const std::function<void(world_rank, std::string)> &report) const {
    std::vector<pollfd> waited;
    waited.reserve(others_.size() + 1);
    for (watched const &each : others_) {
        waited.push_back({.fd = each.process.get(), .events = POLLIN, .revents = 0});
    }
    waited.push_back({.fd = stop_.get(), .events = POLLIN, .revents = 0});
    while (waited.back().revents == 0) {
        if (::poll(waited.data(), waited.size(), -1) < 0) {
            continue; // by a signal
        }
        for (std::size_t i = 0; i < others_.size(); ++i) {
            if (waited[i].revents != 0) {
                waited[i].fd = -1; // poll() ignores it
                report(others_[i].rank,
                       fmt::format("rank {} on this host has ended", others_[i].rank.value()));
            }
        }
    }
}

} // namespace diomp::transport
