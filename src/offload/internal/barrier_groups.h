// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GPUs need to know for barriers of groups in regions
// (diomp/device_barrier.h): for each round the members that a rank signals and
// waits for, and the slot of the group's words there. A rank chooses the slot
// of a group when its own device, or a member that signals it, asks first, and
// uses it again when the group has been freed here: a member that has passed a
// barrier has had all of its signals, so none arrives later. Words only grow,
// so the numbers of the next group's barriers are larger.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"
#include "offload/group_members.h"
#include "transport/types.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

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
    /// This rank has freed the group with this id: its slot may be used again.
    void forget(std::uint64_t id);
    /// Handles that the table of the device may still have although their groups have been freed,
    /// since the last call.
    std::vector<ompx_group_t> take_freed(int device);
    [[nodiscard]] bool has_freed(int device) const {
        return (freed_devices_.load(std::memory_order_acquire) >> device & 1) != 0;
    }

private:
    struct slot_request;
    struct slot_reply;
    /// The slot has the form of diomp_group_reply.
    struct group_words {
        std::uint64_t slot;
        std::vector<std::pair<int, ompx_group_t>> handles; ///< device and its handle
    };

    void on_request(const transport::message &incoming);
    /// Chooses a slot for the group if it has none. Null: all are in use. Call with the mutex.
    group_words *find_or_add(std::uint64_t group_id);
    std::uint64_t slot_of(std::uint64_t group_id); ///< 0: all are in use
    static status check_devices(const group_members &of, int device);
    result<std::uint64_t> slot_at(const group_members &of, std::size_t member, int device);

    const alloc_directory &directory_;
    messaging::call_service &calls_;
    transport::handler_id handler_;
    group_finder find_;                              ///< empty: there are no groups
    std::mutex mutex_;                               ///< leaf lock, guards the members below
    std::map<std::uint64_t, group_words> groups_;    ///< by the group's id
    std::uint64_t num_slots_ = 1;                    ///< that were ever used; 0: the world's
    std::deque<std::uint64_t> free_slots_;           ///< for their next group
    std::map<int, std::vector<ompx_group_t>> freed_; ///< by device, see take_freed
    std::atomic<std::uint64_t> freed_devices_{0};    ///< bit per device
};

} // namespace diomp::offload
