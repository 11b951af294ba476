// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A peer rank and the endpoints to it: one per worker that has sent something to it.
//
// Memory per peer: see docs/conduits.md.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/ucx/endpoint.h"

#include <atomic>
#include <deque>
#include <vector>

namespace diomp::transport::ucx {

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
