// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A UCX worker with its lock and its packets. Worker 0 receives everything that other ranks send.
#pragma once

#include "conduit/ucx/context.h"
#include "conduit/ucx/wire.h"

#include <mutex>
#include <vector>

namespace diomp::conduit::ucx {

struct channel;
class peer;

/// A buffer of records on its way to one peer.
struct packet {
    channel *owner = nullptr;
    std::size_t nbytes = 0;
    alignas(16) std::byte bytes[packet_bytes];
};

/// Everything but the constructor and `mutex` itself is under `mutex`. Lock order: worker 0,
/// another worker, a peer's lock.
class worker {
public:
    static result<std::unique_ptr<worker>> create(context &owner, std::uint16_t index);
    ~worker();
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;

    /// Lets UCX work; callbacks run inside. True if it did something. One round, since each looks
    /// at all sockets: what has come is answered before the next look.
    bool progress();
    /// Asks UCX to make event_fd readable at the next event. False: there are events already.
    bool arm();

    packet *take_packet();
    void give_packet(packet *spent) { free_packets_.push_back(spent); }

    context &owner;
    std::uint16_t const index;
    ucp_worker_h handle = nullptr;
    int event_fd = -1;
    std::mutex mutex;
    std::vector<channel *> open_channels; ///< with records that are not sent yet
    std::vector<channel *> unsettled;     ///< with puts that no flush has been seen to complete
    std::vector<peer *> broken;           ///< found out in callbacks, to be given up outside
    std::size_t num_requests = 0;         ///< of UCX, unfinished
    std::uint64_t num_rounds = 0;         ///< of progress

private:
    worker(context &process, std::uint16_t number) : owner(process), index(number) {}

    std::vector<packet *> free_packets_;
};

} // namespace diomp::conduit::ucx
