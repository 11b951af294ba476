// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/node_watch.h"

#include "base/service_thread.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <utility>

namespace diomp::transport {
namespace {

/// The system does not wake a thread when a lock is released.
constexpr std::chrono::milliseconds watch_interval{50};

struct flock record_at(std::size_t at) {
    struct flock made{};
    made.l_type = F_WRLCK;
    made.l_whence = SEEK_SET;
    made.l_start = static_cast<off_t>(at);
    made.l_len = 1;
    return made;
}

} // namespace

bool lock_record(int fd, std::size_t at) {
    struct flock record = record_at(at);
    return ::fcntl(fd, F_SETLK, &record) == 0;
}

bool is_record_locked(int fd, std::size_t at) {
    struct flock record = record_at(at);
    return ::fcntl(fd, F_GETLK, &record) == 0 && record.l_type != F_UNLCK;
}

node_watch::node_watch(unique_fd file, std::vector<world_rank> ranks, world_rank self)
    : file_(std::move(file)), ranks_(std::move(ranks)), self_(self) {}

node_watch::~node_watch() {
    stopping_.store(true, std::memory_order_release);
    if (thread_.joinable()) {
        thread_.join();
    }
}

result<std::unique_ptr<node_watch>>
node_watch::create(unique_fd file, std::vector<world_rank> ranks, world_rank self) {
    if (!lock_record(file.get(), self.index())) {
        return system_error("locking a record in a file of this node", errno);
    }
    return std::unique_ptr<node_watch>(new node_watch(std::move(file), std::move(ranks), self));
}

bool node_watch::has_ended(world_rank peer) const {
    return peer != self_ && std::ranges::find(ranks_, peer) != ranks_.end() &&
           !is_record_locked(file_.get(), peer.index());
}

void node_watch::start(std::function<void(world_rank, std::string)> report) {
    thread_ =
        start_service_thread("diomp-watch", [this, report = std::move(report)] { run(report); });
}

void node_watch::run(const std::function<void(world_rank, std::string)> &report) {
    std::vector<world_rank> present = ranks_;
    while (!stopping_.load(std::memory_order_acquire) && present.size() > 1) {
        std::erase_if(present, [&](world_rank peer) {
            bool const is_lost = has_ended(peer);
            if (is_lost) {
                report(peer, fmt::format("rank {} on this host has ended", peer.value()));
            }
            return is_lost;
        });
        std::this_thread::sleep_for(watch_interval);
    }
}

} // namespace diomp::transport
