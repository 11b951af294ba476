// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on device memory: translates the program's pointers and device numbers, of one or
// several endpoints, into a collective over memory that a library, a device or the host can reduce
// and move.
//
// Memory that the host can load (host devices) is used in place. Calls on accelerator memory run in
// the vendor's library, if the group can have one and the library has the call; otherwise from
// device to device, if the call is large and all devices can access each other's memory; otherwise
// through host memory. Calls on remote devices: remote_calls.h.
#pragma once

#include "coll/collective.h"
#include "device_coll/device_collectives.h"
#include "device_coll/internal/checked_call.h"
#include "device_coll/internal/direct_collectives.h"
#include "device_coll/internal/endpoint_calls.h"
#include "device_coll/internal/vendor_choice.h"
#include "group/group.h"
#include "offload/accelerators.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace diomp::offload {
class segment_table;
}

namespace diomp::device_coll {

class host_copies;
class node_collectives;
class remote_calls;

/// Any thread.
class device_calls {
public:
    /// The arguments must outlive this object.
    device_calls(coll::collectives &collectives, offload::devices &devices,
                 messaging::engine &engine, group::group_registry &groups, options chosen);
    ~device_calls();

    // As device_collectives, which forwards to these.
    status run(group::group &members, const coll::request &args, int device);
    result<ompx_event *> start(group::group &members, const coll::request &args, int device);
    void describe(group::group &members, ompx_group_t handle);
    void forget(group::group &members, ompx_group_t handle);
    void finish() { static_cast<void>(vendor_calls_.lock_calls()); }

private:
    /// Buffers of all of the caller's endpoints if the host can load all of them; otherwise empty.
    /// `into` has space for max_fast_endpoints.
    static constexpr std::size_t max_fast_endpoints = 8;
    result<std::span<const coll::endpoint_buffers>>
    find_loadable(const group::group &members, const coll::request &args, int device,
                  std::span<coll::endpoint_buffers> into);

    /// This thread's last call whose buffers were all loadable by the host. A call with equal
    /// arguments needs no lookup.
    struct cached_call {
        const device_calls *by = nullptr;
        const group::group *of = nullptr;
        std::uint64_t version = 0; ///< of vendor_choice
        std::uint64_t epoch = 0;   ///< of device memory
        int device = 0;
        void *dst = nullptr; ///< as passed by the program
        const void *src = nullptr;
        /// Holds the first endpoint's buffers: copying a request right after it was stored stalls
        /// (docs/collectives.md).
        coll::request args;
        std::array<coll::endpoint_buffers, max_fast_endpoints> buffers;
        std::span<const coll::endpoint_buffers> own;
    };
    static cached_call &last_call();
    [[nodiscard]] bool matches(const cached_call &last, const group::group &members,
                               const coll::request &args, int device) const;
    /// A call that does not match the cached one.
    status run_uncached(group::group &members, const coll::request &args, int device);

    enum class buffer_role : bool { source, destination };
    /// A buffer of the caller. Errors: also for a constant as the destination.
    result<device_buffer_view> find(const void *pointer, int device, std::size_t nbytes,
                                    buffer_role role);
    /// The buffers of own endpoint number `own_index`, whose device is `device`.
    result<endpoint_views> find_buffers(const group::group &members, const coll::request &args,
                                        std::size_t own_index, int device);
    result<checked_call> find_all_buffers(const group::group &members, const coll::request &args,
                                          int device);
    status run_locked(group::group &members, checked_call &call);
    status run_locked(group::group &members, checked_call &call, const vendor_choice::paths &by);
    /// Device to device. False: no member has written anything.
    result<bool> run_device_to_device(group::group &members, const checked_call &call,
                                      std::size_t from_bytes);
    /// Through host memory.
    status run_through_host(group::group &members, checked_call &call);
    /// Waits for a call in the vendor's library; serves messages meanwhile.
    status wait_for_library(function_ref<bool()> is_over, function_ref<std::string()> describe);
    status run_in_vendor_library(group::group &members, const checked_call &call,
                                 device_coll::vendor::vendor_group &communicators);

    /// Index among the caller's endpoints; nullopt: the call is for all of them.
    static result<std::optional<std::size_t>> own_index_of(const group::group &members, int device);
    endpoint_calls &calls_of(const group::group &members);
    result<ompx_event *> start_one_endpoint(group::group &members, const coll::request &args,
                                            std::size_t own_index, bool blocks);
    /// Lock of the queue of calls that may run in a vendor's library, if calls of this group may;
    /// to be taken before the group's call lock.
    std::optional<group::call_queue::call_lock> lock_vendor_queue(const group::group &members);
    /// Queues `call` for the thread of the group, or for the one of all vendor calls.
    void submit(group::group &members, std::function<void()> call);
    status run_set(group::group &members, endpoint_calls::call_set &calls);

    coll::collectives &collectives_;
    offload::devices &devices_;
    const offload::segment_table &segments_;
    messaging::engine &engine_;
    vendor_choice vendors_;
    direct_collectives direct_;
    std::unique_ptr<node_collectives> const node_collectives_;
    std::unique_ptr<host_copies> const copies_;
    std::unique_ptr<remote_calls> const remote_;
    /// Calls of all groups that may run in a vendor's library. Calls on one device must be made in
    /// the same order on all ranks, and the program's order is the only one that all ranks share.
    /// Lock order: this queue before a group's call lock.
    group::call_queue vendor_calls_;
    std::mutex mutex_; ///< leaf lock; guards calls_
    std::map<const group::group *, std::unique_ptr<endpoint_calls>> calls_;
};

} // namespace diomp::device_coll
