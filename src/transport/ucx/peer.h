// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A peer rank and the endpoints to it: one per worker that has sent something to it.
//
// Memory per peer: see docs/conduits.md.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/ucx/worker.h"

#include <atomic>
#include <deque>
#include <span>
#include <vector>

namespace diomp::transport::ucx {

/// The endpoint of one worker to one peer. All members are under the worker's lock.
struct endpoint {
    endpoint(worker &from, peer &to) : owner(from), target(to) {}
    ~endpoint();
    endpoint(const endpoint &) = delete;
    endpoint &operator=(const endpoint &) = delete;

    status connect();
    /// Closes the UCX endpoint; its operations in flight end with an error. Not within a callback.
    void destroy();
    /// Adds a record to the open packet, which is sent first if it has no space left. Returns the
    /// buffer for the payload.
    std::byte *append(record_kind kind, std::uint64_t value, std::size_t nbytes,
                      std::uint16_t handler = 0, std::uint8_t auxiliary = 0);
    /// Sends the open packet, if there is one.
    void transmit();
    /// Sends one large transfer; `done` counts until the memory may be reused. Returns the number
    /// of its chunks, each of which the target counts. A transfer from or to device memory is a
    /// single chunk that UCX reads and writes directly.
    std::uint32_t send_long(record_kind kind, std::uint64_t value, const void *source,
                            std::size_t nbytes, completion *done, memory_kinds kinds = {});
    /// Sends a message with its long data, unchunked.
    void send_long_message(std::uint16_t handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &done);
    /// UCX's put, get, atomics and flush, for endpoints with a remote key. `done` as in conduit.h.
    void rdma_put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
                  completion &done);
    void rdma_get(std::uint64_t remote_address, void *destination, std::size_t nbytes,
                  completion &done);
    void rdma_atomic(std::uint64_t remote_address, const atomic_call &call, void *result,
                     completion &done);
    /// False if there is nothing to flush.
    bool rdma_flush(completion &done);
    /// Sends the open packet now, or, if much was sent since the last progress, with the next
    /// progress.
    void transmit_soon();

    /// Lists the endpoint for flushes of all peers.
    void mark_unflushed() {
        if (!is_unflushed) {
            is_unflushed = true;
            owner.unflushed.push_back(this);
        }
    }

    [[nodiscard]] bool is_full() const {
        return num_in_flight >= max_in_flight || num_chunks >= max_chunks;
    }

    /// Limits of packets, and of chunks of large transfers (in the caller's memory), in flight.
    /// Beyond them the queue is full for put and try_send.
    static constexpr std::uint32_t max_in_flight = 64;
    static constexpr std::uint32_t max_chunks = 1024;

    worker &owner;
    peer &target;
    ucp_ep_h ep = nullptr;
    ucp_rkey_h remote_key = nullptr; ///< null if neither UCX's RMA nor its atomics are used
    bool has_rdma = false;           ///< transfers use UCX's put and get
    bool reports_failures = true;
    bool uses_chunks = true; ///< false: UCX has a zero-copy protocol for large transfers
    packet *open = nullptr;
    std::chrono::steady_clock::time_point open_since; ///< valid if open_was_seen
    bool open_was_seen = false;                       ///< by progress
    bool is_urgent = false;                           ///< the next progress sends the open packet
    bool is_listed = false;                           ///< in owner.pending_endpoints
    bool has_unflushed_sends = false;                 ///< sends that no flush covers
    bool is_unflushed = false;                        ///< in owner.unflushed
    bool has_unflushed_rdma = false;                  ///< UCX puts that no flush covers
    int num_rdma_flushes = 0;                         ///< in flight
    std::uint64_t last_round = 0; ///< of progress, at the last packet that was sent at once
    int num_sent_in_round = 0;    ///< packets sent in that round
    std::uint32_t num_in_flight = 0;
    std::uint32_t num_chunks = 0;
    std::uint32_t epoch = 0;
    std::uint32_t puts_in_epoch = 0;
    std::uint64_t bytes_in_epoch = 0;
    std::uint64_t next_message = 0;

private:
    void close();
    void send_chunk(const am_long_header &header, std::span<const std::byte> payload,
                    const void *source, std::size_t nbytes, completion *done, memory_kinds kinds);
};

/// A flush that the peer has not acknowledged.
struct pending_flush {
    std::uint16_t endpoint;
    std::uint32_t epoch;
    bool acknowledged;
    completion *done;
    std::uint64_t num_puts;
    std::uint64_t put_bytes;
};

struct pending_get {
    std::byte *destination = nullptr;
    std::size_t nbytes = 0;
    std::size_t num_left = 0; ///< bytes not yet received
    completion *done = nullptr;
    memory_kind memory = memory_kind::host; ///< of the destination
};

class peer final : public network_peer {
public:
    peer(world_rank rank, std::size_t num_workers) : network_peer(rank), endpoints_(num_workers) {}

    /// nullptr before first use. Under the worker's lock.
    [[nodiscard]] endpoint *find_endpoint(const worker &owner) const {
        return endpoints_[owner.index].get();
    }
    /// Connects on first use. Under the worker's lock; may call the launcher, which may block.
    result<endpoint *> endpoint_of(worker &owner);
    void close_endpoint(const worker &owner) { endpoints_[owner.index].reset(); }

    void add_flush(const endpoint &from, completion &done);
    /// Adds `done` to the newest unacknowledged flush of the endpoint; false if there is none.
    bool join_flush(std::uint16_t endpoint, completion &done);
    void acknowledge(std::uint16_t endpoint, std::uint32_t epoch);

    std::uint64_t add_get(void *destination, std::size_t nbytes, memory_kind memory,
                          completion &done);
    /// Empty if the get does not exist or has ended.
    pending_get find_get(std::uint64_t id);
    /// Records that `nbytes` have arrived, or, with a code, that the get has failed.
    void end_get(std::uint64_t id, std::size_t nbytes, int code);
    [[nodiscard]] bool has_many_gets() const {
        return num_gets_.load(std::memory_order_relaxed) >= max_gets;
    }

    /// True if an operation waits for this peer. Packets being sent do not count.
    [[nodiscard]] bool is_awaited() override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;
    void set_path(const std::string &path);
    [[nodiscard]] std::string path();

    std::atomic<std::uint32_t> num_large_transfers{0}; ///< outgoing, in flight
    std::atomic<bool> is_broken{false};                ///< an endpoint has failed; fail() follows

    static constexpr std::uint32_t max_gets = 4096;

private:
    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;

    std::vector<std::unique_ptr<endpoint>> endpoints_; ///< [worker]
    std::atomic<std::uint32_t> num_gets_{0};
    // Under mutex_:
    std::deque<pending_flush> flushes_;
    std::vector<pending_get> gets_; ///< [id]
    std::vector<std::uint64_t> free_ids_;
    std::string path_;
};

} // namespace diomp::transport::ucx
