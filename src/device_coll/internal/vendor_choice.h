// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decides which groups of endpoints run their collectives in NCCL or RCCL: the members exchange
// which devices and which library they have, reach the same decision, and get the id of their
// communicators from the first member. The same facts decide whether native calls go from device to
// device.
//
// A library requires that all endpoints are different devices of one vendor and that every member
// has the same release. Groups of ranks do not use a library: a rank's device may change from call
// to call.
#pragma once

#include "base/result.h"
#include "coll/collective.h"
#include "device_coll/device_collectives.h"
#include "offload/accelerators.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace diomp::device_coll::vendor {
class vendor_group;
class vendor_library;
} // namespace diomp::device_coll::vendor

namespace diomp::group {
class group;
class group_registry;
} // namespace diomp::group

namespace diomp::offload {
class devices;
}

namespace diomp::device_coll {

/// Any thread; the caller holds the group's call lock where noted.
class vendor_choice {
public:
    vendor_choice(coll::collectives &collectives, offload::devices &devices,
                  group::group_registry &groups, options chosen);
    ~vendor_choice();

    /// Whether calls on the group may run in a vendor's library: this rank has GPUs in it, and the
    /// user has not disabled libraries. Constant for a group.
    bool may_use_library(const group::group &members);
    /// The paths of a group's calls.
    struct paths {
        static constexpr std::size_t never = SIZE_MAX;

        device_coll::vendor::vendor_group *communicators = nullptr; ///< null: no library
        /// Native calls on blocks of at least this size may go from device to device; in a group
        /// over several nodes, within each node.
        std::size_t direct_from_bytes = never;
        std::size_t reduce_from_bytes = never; ///< direct_from_bytes of reductions
        /// Members may use memory of remote devices. Then the members agree on the path of each
        /// call (remote_calls).
        bool has_remote = false;

        /// Every call is a native one through host memory.
        [[nodiscard]] bool uses_host_only() const {
            return communicators == nullptr && direct_from_bytes == never && !has_remote;
        }
    };
    /// The paths of a group; the first call is collective over the group. The caller holds the
    /// group's call lock. Errors: OMPX_ERR_UNSUPPORTED if DIOMP_CCL demands a library that cannot
    /// be used.
    result<paths> find(group::group &members);
    /// Incremented when results of this class may change.
    [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
    /// Disables device-to-device calls of the group, since a device cannot access another one's
    /// memory. All members call.
    void disable_device_to_device(const group::group &members);
    /// Forgets the group; call before it is freed.
    void forget(const group::group &members);

private:
    struct decision;
    struct group_state; ///< results of a group that have been computed so far
    struct own_endpoint {
        const offload::accelerator *on = nullptr; ///< null: a host device
        std::size_t index = 0;
    };

    std::shared_ptr<device_coll::vendor::vendor_library> load(offload::vendor of);
    std::vector<own_endpoint> find_own_endpoints(const group::group &members);
    group_state &state_of(const group::group &members); ///< under mutex_
    /// This thread's results for its last group.
    struct thread_cache;
    thread_cache &thread_cache_of(const group::group &members) const;
    result<paths> find_or_decide(group::group &members);
    result<decision> decide(group::group &members);
    struct endpoint_facts;
    /// Collective: the facts of all members' endpoints, [rank][endpoint of the rank].
    result<std::vector<endpoint_facts>>
    exchange(group::group &members, const std::vector<own_endpoint> &own, decision &made);
    /// Why native calls do not go from device to device; "" if they do. Creates the subgroups of a
    /// group over several nodes.
    std::string direct_obstacle(group::group &members, const std::vector<endpoint_facts> &facts);
    /// Sets the sizes from which native calls go from device to device.
    static void choose_sizes(const group::group &members, const std::vector<endpoint_facts> &facts,
                             decision &made);
    /// Why the group cannot use a library; "" if it can.
    std::string library_obstacle(const group::group &members,
                                 const std::vector<endpoint_facts> &facts) const;
    result<std::unique_ptr<device_coll::vendor::vendor_group>>
    connect(group::group &members, const std::vector<own_endpoint> &own,
            std::shared_ptr<device_coll::vendor::vendor_library> library);

    coll::collectives &collectives_;
    offload::devices &devices_;
    group::group_registry &groups_;
    options const options_;
    std::atomic<std::uint64_t> version_{1}; ///< see version()
    std::mutex mutex_;                      ///< leaf lock; guards the members below
    std::map<const group::group *, std::unique_ptr<group_state>> known_;
    std::map<offload::vendor, std::shared_ptr<device_coll::vendor::vendor_library>> libraries_;
};

} // namespace diomp::device_coll
