// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers with memory of remote devices that continue after their calls: the non-blocking ones.
// Between two devices the session of the own one transfers, and replies when it is complete;
// otherwise this process puts or gets. They are in no order with each other, and later operations
// of the devices do not wait for them: their memory belongs to them until they are complete.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "messaging/pooled_completion.h"
#include "offload/remote/observer.h"
#include "offload/remote/protocol.h"
#include "offload/remote_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace diomp::offload::remote {

class client;
class remote_device;

/// The transfers of one client. Any thread.
class started_transfers {
public:
    /// A call waits first if so many are in flight.
    static constexpr std::size_t max_in_flight = 256;

    explicit started_transfers(client &owner) : owner_(owner) {}

    /// A copy by the session of `own`: operation::begin_copy or begin_pull. Errors: OMPX_ERR_PEER;
    /// OMPX_ERR_RANGE.
    status start_copy(remote_device &own, operation op, world_rank other, std::uint64_t destination,
                      std::uint64_t source, std::size_t nbytes, transfer_start &how);
    /// A put or get of this process with memory of the session `with`.
    status start_by_client(world_rank with, rma::direction dir, std::uint64_t device_address,
                           std::byte *here, std::size_t nbytes, transfer_start &how);

    /// Makes progress; whether none is in flight. Does not block. An error is that of a transfer
    /// without an event, which no call has reported yet.
    result<bool> poll(remote_memory::errors which);
    /// Waits until none is in flight. Errors: see poll().
    status wait();
    /// Call in the handler of replies whose queue is started_queue.
    void handle_reply(world_rank source, const batch_reply &reply);

private:
    struct transfer {
        transport::completion over;
        remote_device *by = nullptr; ///< null: this process transfers
        std::optional<messaging::pooled_completion> network;
        world_rank with{0}; ///< the session of `network`
        bool has_event = false;
        client_observer::direction which = client_observer::direction::between_devices;
        std::optional<std::size_t> device; ///< index of an own one, for the observer
        std::size_t nbytes = 0;
        client_observer::time_point begin;
        std::optional<error> failure; ///< set before the end of `over`
    };
    using shared_transfer = std::shared_ptr<transfer>;

    /// Waits until another transfer can start.
    status reserve();
    /// Adds a transfer and gives its poll to `how`. Returns its number.
    std::uint64_t add(const shared_transfer &started, transfer_start &how);
    /// Ends the transfers whose outcome is known. Call with mutex_ held.
    void end_complete();
    void end(transfer &of, std::optional<error> failure);
    void make_progress();
    void count_open(); ///< call with mutex_ held

    client &owner_;
    /// Transfers in flight, and a failure that has not been reported.
    std::atomic<std::size_t> num_open_{0};
    std::mutex mutex_; ///< no lock is taken under it but session_control's; protects the rest
    std::uint64_t next_number_ = 1;
    std::map<std::uint64_t, shared_transfer> in_flight_; ///< [number]
    std::optional<error> failure_;                       ///< of a transfer without an event
};

} // namespace diomp::offload::remote
