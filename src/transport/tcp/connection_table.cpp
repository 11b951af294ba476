// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/connection_table.h"

#include "base/assert.h"
#include "transport/tcp/connection.h"

#include <algorithm>
#include <cerrno>

namespace diomp::transport::tcp {

connection_table::connection_table(std::size_t max_connections)
    : connections_(max_connections), is_watched_for_write_(max_connections) {}

connection_table::~connection_table() {
    for (std::unique_ptr<connection> &each : connections_.first(num_connections_.load())) {
        each.reset();
    }
}

status connection_table::open() {
    epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    return epoll_.valid() ? status() : system_error("epoll", errno);
}

connection *connection_table::sole() const {
    if (num_alive_.load(std::memory_order_acquire) != 1) {
        return nullptr;
    }
    auto const found =
        std::ranges::find_if(all(), [](auto &each) { return is_open(each->current_state()); });
    return found == all().end() ? nullptr : found->get();
}

connection &connection_table::add(std::unique_ptr<connection> made) {
    std::size_t const before = num_connections_.load(std::memory_order_relaxed);
    DIOMP_ASSERT(before < connections_.size() && connections_[before] == nullptr,
                 "the table has space (has_space)");
    connections_[before] = std::move(made);
    num_connections_.store(before + 1, std::memory_order_release);
    return *connections_[before];
}

bool connection_table::set_events(int operation, int descriptor, void *tag, bool for_write) const {
    epoll_event event{};
    event.events = EPOLLIN | (for_write ? EPOLLOUT : 0U);
    event.data.ptr = tag;
    return ::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
}

void connection_table::watch(connection &opened) {
    num_alive_.fetch_add(1, std::memory_order_release);
    set_events(EPOLL_CTL_ADD, opened.stream().fd(), &opened);
}

status connection_table::watch(int descriptor, void *tag) {
    return set_events(EPOLL_CTL_ADD, descriptor, tag) ? status() : system_error("epoll", errno);
}

void connection_table::unwatch(connection &old_connection) {
    if (old_connection.stream().fd() < 0) {
        return; // it has never been open
    }
    set_events(EPOLL_CTL_DEL, old_connection.stream().fd(), &old_connection);
    [[maybe_unused]] auto const before = num_alive_.fetch_sub(1, std::memory_order_release);
    DIOMP_ASSERT(before > 0, "only watched connections are counted");
}

bool connection_table::arm() {
    auto const connections = all();
    for (std::size_t i = 0; i < connections.size(); ++i) {
        connection &each = *connections[i];
        bool const waits =
            each.has_queued_data() && each.current_state() == connection::state::connected;
        if (is_watched_for_write_[i].exchange(waits) != waits) {
            set_events(EPOLL_CTL_MOD, each.stream().fd(), &each, waits);
        }
    }
    return true;
}

} // namespace diomp::transport::tcp
