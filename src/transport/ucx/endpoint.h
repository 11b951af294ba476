// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The endpoint of one worker to one peer.
#pragma once

#include "transport/ucx/endpoint_rdma.h"
#include "transport/ucx/packet_sender.h"
#include "transport/ucx/worker.h"

#include <span>

namespace diomp::transport::ucx {

/// Counts what an endpoint has sent since its last flush: see wire.h.
class send_epoch {
public:
    /// Adds puts that the target counts as `count`.
    void add_put(std::uint32_t count, std::size_t nbytes) {
        num_puts_ += count;
        put_bytes_ += nbytes;
        has_sends_ = true;
    }
    void note_message() { has_sends_ = true; }
    /// Whether a flush has to wait for anything of this epoch.
    [[nodiscard]] bool needs_flush(bool also_messages) const {
        return num_puts_ > 0 || (also_messages && has_sends_);
    }
    /// A flush was sent: begins the next epoch.
    void close() { *this = send_epoch(number_ + 1); }

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] std::uint32_t num_puts() const { return num_puts_; }
    [[nodiscard]] std::uint64_t put_bytes() const { return put_bytes_; }

    explicit send_epoch(std::uint32_t number = 0) : number_(number) {}

private:
    std::uint32_t number_;
    std::uint32_t num_puts_ = 0;
    std::uint64_t put_bytes_ = 0;
    bool has_sends_ = false;
};

/// The endpoint of one worker to one peer. All members are under the worker's lock.
struct endpoint {
    endpoint(worker &from, peer &to) : owner(from), target(to), packets(*this), rdma(*this) {}
    ~endpoint() { destroy(); }
    endpoint(const endpoint &) = delete;
    endpoint &operator=(const endpoint &) = delete;

    status connect();
    /// Closes the UCX endpoint; its operations in flight end with an error. Not within a callback.
    void destroy();
    /// Sends one large transfer; `done` counts until the memory may be reused. Returns the number
    /// of its chunks, each of which the target counts. A transfer from or to device memory is a
    /// single chunk that UCX reads and writes directly.
    std::uint32_t send_long(record_kind kind, std::uint64_t value, const void *source,
                            std::size_t nbytes, completion *done, memory_kinds kinds = {});
    /// Sends a message with its long data, unchunked.
    void send_long_message(std::uint16_t handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &done);
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
    bool reports_failures = true;
    bool uses_chunks = true; ///< false: UCX has a zero-copy protocol for large transfers
    packet_sender packets;
    endpoint_rdma rdma;
    send_epoch epoch;
    bool is_unflushed = false;       ///< in owner.unflushed
    std::uint32_t num_in_flight = 0; ///< packets and operations of `rdma`
    std::uint32_t num_chunks = 0;

private:
    void close();
    void send_chunk(const am_long_header &header, std::span<const std::byte> payload,
                    const void *source, std::size_t nbytes, completion *done, memory_kinds kinds);
};

} // namespace diomp::transport::ucx
