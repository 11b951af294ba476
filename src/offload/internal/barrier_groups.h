// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GPUs need to know for barriers of groups in regions
// (diomp/device_barrier.h): for each round the members that a rank signals and
// waits for, and the slot of the group's words there. A rank chooses the slot
// of a group when its own device, or a member that signals it, asks first.
// Slots are not used again, since words only grow.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"
#include "offload/group_members.h"
#include "transport/types.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::offload {

class alloc_directory;

/// Thread-safe. Create before engine.start().
class barrier_groups {
public:
    barrier_groups(const alloc_directory &directory, messaging::engine &engine,
                   messaging::call_service &calls);

    /// Call before the first region.
    void set_finder(group_finder find) { find_ = std::move(find); }
    /// Fills the words of diomp_group_reply for a round of the group's barrier on
    /// an own device; asks the member that is signalled. OMPX_ERR_UNSUPPORTED:
    /// the group has members that are hosts, or several devices of a rank, or
    /// other devices.
    status describe_round(ompx_group_t handle, int device, std::uint64_t round,
                          std::span<std::uint64_t> words);

private:
    struct slot_request;
    struct slot_reply;

    void on_request(const transport::message &incoming);
    /// The slot of a group's words at this rank; 0: all are in use.
    std::uint64_t slot_of(std::uint64_t group_id);
    static status check_devices(const group_members &of, int device);
    result<std::uint64_t> slot_at(const group_members &of, std::size_t member, int device);

    const alloc_directory &directory_;
    messaging::call_service &calls_;
    transport::handler_id handler_;
    group_finder find_;                            ///< empty: there are no groups
    std::mutex mutex_;                             ///< leaf lock, guards the slots
    std::map<std::uint64_t, std::uint64_t> slots_; ///< by the group's id
};

} // namespace diomp::offload
