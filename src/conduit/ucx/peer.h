// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank that we speak to, and the channels to it: one per worker that has sent something.
//
// Bytes per peer: see docs/conduits.md.
#pragma once

#include "conduit/network_peer.h"
#include "conduit/ucx/worker.h"

#include <atomic>
#include <deque>
#include <span>
#include <vector>

namespace diomp::conduit::ucx {

/// The way from one worker to one peer. All under the worker's lock.
struct channel {
    channel(worker &from, peer &to) : owner(from), target(to) {}
    ~channel();
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;

    status connect();
    /// Closes the endpoint for good; what UCX still has under way ends with an error. No callback
    /// may be running.
    void abandon();
    /// Adds a record to the open packet; sends that first if there is no room. Returns where the
    /// payload goes.
    std::byte *append(record_kind kind, std::uint64_t value, std::size_t nbytes,
                      std::uint16_t handler = 0, std::uint8_t about = 0);
    /// Sends the open packet, if there is one.
    void ship();
    /// Sends one large transfer; `done` counts until the memory may be reused. Returns the number
    /// of its pieces, each of which lands by itself. With memory of devices at an end it is one
    /// that UCX takes from there and writes there.
    std::uint32_t send_bulk(record_kind kind, std::uint64_t value, const void *source,
                            std::size_t nbytes, completion *done, memory_ends ends = {});
    /// Sends a message with data in one piece.
    void send_bulk_message(std::uint16_t handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &done);
    /// UCX's own put, get, atomics and flush; of channels with a remote key. `done` as in
    /// conduit.h.
    void rdma_put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
                  completion &done);
    void rdma_get(std::uint64_t remote_address, void *destination, std::size_t nbytes,
                  completion &done);
    void rdma_atomic(std::uint64_t remote_address, const atomic_call &call, void *result,
                     completion &done);
    /// False if there is nothing to wait for.
    bool rdma_flush(completion &done);
    /// Sends now, unless much was sent since the last progress: then progress sends it, with what
    /// comes until then.
    void ship_soon();

    /// Flushes of all peers look at it.
    void list_unsettled() {
        if (!is_unsettled) {
            is_unsettled = true;
            owner.unsettled.push_back(this);
        }
    }

    [[nodiscard]] bool is_full() const {
        return num_in_flight >= max_in_flight || num_pieces >= max_pieces;
    }

    /// Packets, and pieces of large transfers (which lie in the caller's memory), under way before
    /// put and try_send see a full queue.
    static constexpr std::uint32_t max_in_flight = 64;
    static constexpr std::uint32_t max_pieces = 1024;

    worker &owner;
    peer &target;
    ucp_ep_h endpoint = nullptr;
    ucp_rkey_h remote_key = nullptr; ///< where anything of UCX's own is used
    bool has_rdma = false;           ///< UCX's puts and gets are
    bool reports_failures = true;
    bool cuts_bulk = true; ///< into pieces; otherwise UCX moves large transfers without a copy
    packet *open = nullptr;
    std::chrono::steady_clock::time_point open_since; ///< valid if open_was_seen
    bool open_was_seen = false;                       ///< by progress
    bool is_urgent = false;                           ///< the next progress sends the open packet
    bool is_listed = false;                           ///< in owner.open_channels
    bool has_news = false;                            ///< something was sent that no flush covers
    bool is_unsettled = false;                        ///< in owner.unsettled
    bool has_rdma_news = false;                       ///< puts of UCX that no flush covers
    int num_rdma_flushes = 0;                         ///< under way
    std::uint64_t last_round = 0; ///< of progress, when a packet was sent at once
    int num_at_once = 0;          ///< sent in that round
    std::uint32_t num_in_flight = 0;
    std::uint32_t num_pieces = 0;
    std::uint32_t epoch = 0;
    std::uint32_t puts_in_epoch = 0;
    std::uint64_t bytes_in_epoch = 0;
    std::uint64_t next_message = 0;

private:
    void close();
    void send_piece(const bulk_header &header, std::span<const std::byte> payload,
                    const void *source, std::size_t nbytes, completion *done, memory_ends ends);
};

/// A flush that its peer has not acknowledged.
struct pending_flush {
    std::uint16_t channel;
    std::uint32_t epoch;
    bool acknowledged;
    completion *done;
    std::uint64_t num_puts;
    std::uint64_t put_bytes;
};

struct pending_get {
    std::byte *destination = nullptr;
    std::size_t nbytes = 0;
    std::size_t num_left = 0; ///< bytes that have not come yet
    completion *done = nullptr;
    memory_kind memory = memory_kind::host; ///< of the destination
};

class peer final : public network_peer {
public:
    peer(world_rank rank, std::size_t num_workers) : network_peer(rank), channels_(num_workers) {}

    /// nullptr before the first use. Under the worker's lock.
    [[nodiscard]] channel *find_channel(const worker &owner) const {
        return channels_[owner.index].get();
    }
    /// Connects on first use. Under the worker's lock; may ask the launcher.
    result<channel *> channel_of(worker &owner);
    void drop_channel(const worker &owner) { channels_[owner.index].reset(); }

    void add_flush(const channel &from, completion &done);
    /// Adds `done` to the newest unacknowledged flush of the channel; false if there is none.
    bool join_flush(std::uint16_t channel, completion &done);
    void acknowledge(std::uint16_t channel, std::uint32_t epoch);

    std::uint64_t add_get(void *destination, std::size_t nbytes, memory_kind memory,
                          completion &done);
    /// Empty if there is no such get (any more).
    pending_get find_get(std::uint64_t id);
    /// `nbytes` of it have come, or it has failed.
    void end_get(std::uint64_t id, std::size_t nbytes, int code);
    [[nodiscard]] bool has_many_gets() const {
        return num_gets_.load(std::memory_order_relaxed) >= max_gets;
    }

    /// Something waits for this peer. Sends of packets alone do not count.
    [[nodiscard]] bool is_awaited() override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;
    void learn_path(const std::string &path);
    [[nodiscard]] std::string path();

    std::atomic<std::uint32_t> num_bulk{0}; ///< large transfers under way from here
    std::atomic<bool> is_broken{false};     ///< an endpoint has failed; fail() follows

    static constexpr std::uint32_t max_gets = 4096;

private:
    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;

    std::vector<std::unique_ptr<channel>> channels_; ///< [worker]
    std::atomic<std::uint32_t> num_gets_{0};
    // Under mutex_:
    std::deque<pending_flush> flushes_;
    std::vector<pending_get> gets_; ///< [id]
    std::vector<std::uint64_t> free_ids_;
    std::string path_;
};

} // namespace diomp::conduit::ucx
