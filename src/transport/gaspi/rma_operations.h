// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts and gets, and the markers that show when puts have arrived.
//
// The device thread writes the header of each operation without reading incoming data. Two of them
// that write to each other with full sockets would deadlock. The bytes outstanding to a peer
// therefore stay below the capacity of sockets, except for large operations, whose bodies GPI-2
// writes without this hazard.
#pragma once

#include "transport/gaspi/queue_pool.h"

namespace diomp::transport::gaspi {

/// Under the lock of the network, unless stated otherwise.
class rma_operations {
public:
    using outcome = queue_pool::outcome;

    rma_operations(memory &registered, queue_pool &queues) : memory_(registered), queues_(queues) {}

    /// Starts a put of one chunk, or copies and defers it if it is small.
    outcome put(peer &to, std::uint64_t offset, const std::byte *source, std::size_t nbytes,
                completion &source_free);
    outcome get(peer &from, std::uint64_t offset, std::byte *destination, std::size_t nbytes,
                completion &done);
    /// `done` counts until the puts so far have arrived.
    void flush(peer &to, completion &done);
    /// `done` counts until the messages that were posted so far have arrived.
    outcome flush_messages(peer &to, completion &done);
    /// Starts a marker that the peer's connection answers.
    outcome start_marker(peer &at, marker_kind kind);
    /// Completes markers and starts deferred operations. True if there were any.
    bool advance();
    /// Ends flushes of a lost peer with an error.
    void fail(peer &lost);
    /// Peers with puts that no marker has confirmed.
    [[nodiscard]] const std::vector<peer *> &unflushed() const { return unflushed_; }
    /// Whether there are such peers. Any thread.
    [[nodiscard]] bool has_unflushed() const {
        return num_unflushed_.load(std::memory_order_relaxed) > 0;
    }

private:
    outcome start_put(peer &to, std::uint64_t offset, const std::byte *source, std::size_t nbytes,
                      completion &source_free);
    void defer(peer &to, deferred what);
    bool start_deferred(peer &to);
    static void attach_to_marker(peer &to, marker_kind kind, completion &done);
    bool complete_markers(peer &at, marker_kind kind);
    void list_unflushed(peer &to);
    void unlist_if_flushed(peer &at);

    memory &memory_;
    queue_pool &queues_;
    std::vector<peer *> unflushed_;
    std::atomic<int> num_unflushed_{0};
    std::vector<peer *> waiting_; ///< with deferred operations
    std::vector<peer *> marked_;  ///< with outstanding markers
};

} // namespace diomp::transport::gaspi
