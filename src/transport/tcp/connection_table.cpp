// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/connection_table.h"

#include "base/assert.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/peer.h"

#include <algorithm>
#include <cerrno>

namespace diomp::transport::tcp {

connection_table::connection_table(std::size_t max_connections) : connections_(max_connections) {}

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
    for (auto const &each : all()) {
        if (each->lifecycle().needs_release()) [[unlikely]] {
            return false;
        }
        each->update_write_watch(
            [&](int socket, bool waits) { set_events(EPOLL_CTL_MOD, socket, each.get(), waits); });
    }
    return true;
}

bool connection_table::add_redundant(unique_fd socket) {
    auto const reusable = std::ranges::find_if(all(), [](auto &each) {
        return each->target() == nullptr && each->current_state() == connection::state::closed;
    });
    if (reusable != all().end()) {
        if ((*reusable)->lifecycle().reuse(std::move(socket))) {
            watch(**reusable);
        }
        return true;
    }
    if (!has_capacity()) {
        return false;
    }
    watch(add(std::make_unique<connection>(std::move(socket), num_busy())));
    return true;
}

// As in the CLOCK algorithm for pages: a connection that has been used gets another round.
bool connection_table::close_idle_one() {
    auto const connections = all();
    for (std::size_t tries = 2 * connections.size(); tries > 0; --tries) {
        connection &each = *connections[next_candidate_++ % connections.size()];
        peer *const target = each.target();
        if (target != nullptr && each.current_state() == connection::state::connected &&
            !target->take_use() && !target->has_outstanding() && each.lifecycle().request_close()) {
            return true;
        }
    }
    return false;
}

} // namespace diomp::transport::tcp
