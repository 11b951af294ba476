// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of groups whose members may use remote devices. The members exchange which device each of
// them uses, and whether it can take part at all. If each uses the remote device with the same
// index of its rank, the sessions of these devices make the call among themselves; otherwise it
// goes through the ranks' host memory.
#pragma once

#include "base/result.h"
#include "coll/request.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::coll {
class collectives;
}
namespace diomp::group {
class group;
}
namespace diomp::offload {
class devices;
}

namespace diomp::device_coll {

struct checked_call;
struct endpoint_views;
class host_copies;

/// Any thread. All members of a group make the same calls of this class; they are collective and
/// block, and the caller holds the group's call lock.
class remote_calls {
public:
    /// The arguments must outlive this object.
    remote_calls(coll::collectives &collectives, offload::devices &devices, host_copies &copies)
        : collectives_(collectives), devices_(devices), copies_(copies) {}

    /// The index of the device if its session can make the call. Not collective, without a lock.
    [[nodiscard]] std::optional<int> session_index_of(const group::group &members,
                                                      const coll::request &args,
                                                      const endpoint_views &buffers,
                                                      int device) const;
    /// Runs a call. A member that cannot take part makes it fail on all members.
    status run(group::group &members, checked_call &call);
    /// Instead of run(), by a member that cannot take part: the others get an error with its code.
    void report_failure(group::group &members, ompx_status code);
    /// Makes a new group known to regions on own remote devices: those with the index of the
    /// caller's endpoint if all members' have it; if the members are ranks, all devices.
    /// Collective; blocks. The caller does not hold the lock.
    void describe(group::group &members, ompx_group_t handle);
    /// Frees the groups that the sessions have for this one. The caller does not hold the lock.
    void forget(group::group &members, ompx_group_t handle);

private:
    struct call_fact;
    /// What the sessions of own devices have for a group of the host: a bit for each index.
    struct known_group {
        std::uint32_t for_calls = 0;   ///< a group for calls of the host
        std::uint32_t for_regions = 0; ///< its description, for calls in regions
    };
    result<std::vector<call_fact>> exchange(group::group &members, const call_fact &own);
    /// exchange(); fails if a member cannot take part.
    result<std::vector<call_fact>> agree(group::group &members, const call_fact &own);
    /// The members' ranks in the order of their endpoints, unless the session has the group.
    std::vector<int> ranks_for_session(const group::group &members, int index);
    /// The index of the remote device of the caller's endpoint.
    [[nodiscard]] std::optional<int> own_index(const group::group &members);
    status run_in_sessions(group::group &members, const checked_call &call);

    coll::collectives &collectives_;
    offload::devices &devices_;
    host_copies &copies_;
    std::mutex mutex_; ///< leaf lock; guards groups_
    /// By group::id(), which is never used again: groups that have made a call or been described.
    std::map<std::uint64_t, known_group> groups_;
};

} // namespace diomp::device_coll
