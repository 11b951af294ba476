// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All connections of a rank, and the descriptors that are polled.
#pragma once

#include "base/lazy_array.h"
#include "base/result.h"
#include "base/unique_fd.h"

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <sys/epoll.h>

namespace diomp::transport::tcp {

class connection;

/// Connections stay in the table, at the same address, after they are closed. Any thread, except
/// functions that say otherwise.
class connection_table {
public:
    explicit connection_table(std::size_t max_connections);
    ~connection_table();
    /// Creates the epoll set. Once, before all other calls.
    status open();

    [[nodiscard]] int epoll_fd() const { return epoll_.get(); }
    [[nodiscard]] std::span<const std::unique_ptr<connection>> all() const {
        return {connections_.data(), num_connections_.load(std::memory_order_acquire)};
    }
    /// The only open connection; nullptr if there is none or more than one.
    [[nodiscard]] connection *sole() const;
    /// Counts connections with data to write or broken ones, and coalescers that wait.
    [[nodiscard]] std::atomic<int> *num_busy() { return &num_busy_; }

    /// False if there are more connections than a job can have.
    [[nodiscard]] bool has_capacity() const {
        return num_connections_.load(std::memory_order_relaxed) < connections_.size();
    }
    /// Adds a connection. One thread at a time.
    connection &add(std::unique_ptr<connection> made);
    /// Polls a connection that has been opened.
    void watch(connection &opened);
    /// Polls a descriptor; its events are passed to the handler with `tag`.
    status watch(int descriptor, void *tag);
    /// Stops polling a connection that is no longer used.
    void unwatch(connection &old_connection);
    /// Sockets in use.
    [[nodiscard]] int num_sockets() const { return num_alive_.load(std::memory_order_acquire); }
    /// Adds a redundant connection, in the place of one that has been closed if there is one. One
    /// thread at a time. False: there is no space.
    bool add_redundant(unique_fd socket);
    /// Calls request_close() of one connection that has not been used since the last search and
    /// waits for nothing. False: there is none. One thread at a time.
    bool close_idle_one();
    /// The socket of a watched connection has been closed, which ends its polling.
    void note_socket_closed() { num_alive_.fetch_sub(1, std::memory_order_release); }
    /// Requests write events where data is queued. False: progress is possible now.
    bool arm();
    /// Calls `handle` with each connection or tag that is ready; returns whether a call returned
    /// true. Does not block.
    template <typename Handle>
    bool poll(Handle &&handle) {
        std::array<epoll_event, 64> events;
        int const count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
        bool moved = false;
        for (int i = 0; i < count; ++i) {
            moved = handle(events[static_cast<std::size_t>(i)].data.ptr) || moved;
        }
        return moved;
    }

private:
    bool set_events(int operation, int descriptor, void *tag, bool for_write = false) const;

    unique_fd epoll_;
    lazy_array<std::unique_ptr<connection>> connections_; ///< first num_connections_
    std::atomic<std::size_t> num_connections_{0};
    std::atomic<int> num_alive_{0};  ///< watched connections
    std::size_t next_candidate_ = 0; ///< of close_idle_one()
    std::atomic<int> num_busy_{0};
};

} // namespace diomp::transport::tcp
