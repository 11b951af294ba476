// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A UCX worker with its lock and its packets. Worker 0 receives all that other ranks send.
#pragma once

#include "transport/ucx/context.h"
#include "transport/ucx/wire.h"

#include <mutex>
#include <vector>

namespace diomp::transport::ucx {

struct endpoint;
class packet_sender;
class peer;

/// A buffer of records for one peer.
struct packet {
    endpoint *owner = nullptr;
    std::size_t nbytes = 0;
    alignas(16) std::byte bytes[packet_bytes];
};

/// All members and functions except the constructor are under `mutex`. Lock order: worker 0,
/// another worker, a peer's lock.
class worker {
public:
    static result<std::unique_ptr<worker>> create(context &owner, std::uint16_t index);
    ~worker();
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;

    /// Progresses UCX; callbacks run inside. True if there was progress. One round only: each polls
    /// all sockets, and replies are to be sent before the next one.
    bool progress();
    /// Makes event_fd readable at the next event. False: there are events already.
    bool arm();

    /// Sends open packets that are due.
    void transmit_due_packets();
    /// Records that the peer's connection is lost.
    void mark_broken(peer &lost);

    packet *allocate_packet();
    void release_packet(packet *spent) { free_packets_.push_back(spent); }

    context &owner;
    std::uint16_t const index;
    ucp_worker_h handle = nullptr;
    int event_fd = -1;
    std::mutex mutex;
    std::vector<packet_sender *> pending_packets; ///< with unsent records
    std::vector<endpoint *> unflushed;            ///< with puts that are not known to be complete
    std::vector<peer *> broken;   ///< detected in callbacks, reported outside of them
    std::size_t num_requests = 0; ///< UCX requests in flight
    std::uint64_t num_rounds = 0; ///< of progress

private:
    worker(context &ctx, std::uint16_t number) : owner(ctx), index(number) {}

    std::vector<packet *> free_packets_;
};

} // namespace diomp::transport::ucx
