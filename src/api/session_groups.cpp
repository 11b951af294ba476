// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups of the host in a session: in calls that the host makes by the session, and in calls of
// regions, which name them by their handles on the host. Each has a group of sessions of its own,
// since both may make calls at the same time.
#include "api/internal/session.h"
#include "api/internal/state.h"
#include "base/service_thread.h"
#include "device_coll/session_call.h"
#include "group/registry.h"
#include "messaging/engine.h"
#include "runtime/runtime.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace {

using diomp::error;
using diomp::result;
using diomp::device_coll::session_call;
using diomp::device_coll::session_group;

/// A group of the host that regions may name.
struct region_group {
    bool is_in_creation = true;
    ompx_group_t own = nullptr; ///< null: its creation has failed
    std::string failure;
};

struct host_groups {
    std::mutex mutex;                      ///< leaf lock
    std::condition_variable creation_over; ///< of a group of regions
    bool is_stuck = false;                 ///< a creation has not ended within creation_limit
    std::map<std::uint64_t, ompx_group_t> created; ///< by session_call::group
    std::map<ompx_group_t, region_group> of_regions;
};

host_groups &groups_of_host() {
    static auto &only = *new host_groups; // the library has no static object with a destructor
    return only;
}

/// How long a host waits for the creation of a group that it frees. It does not depend on regions,
/// so it takes this long only if a session of another member stands still.
constexpr std::chrono::seconds creation_limit{30};

/// Waits until the group is not under creation, or for `limit_s`; 0: no limit. Null: there is no
/// such handle.
const region_group *await(host_groups &known, std::unique_lock<std::mutex> &lock,
                          ompx_group_t handle, double limit_s) {
    const region_group *found = nullptr;
    auto const is_over = [&] {
        auto const at = known.of_regions.find(handle);
        found = at == known.of_regions.end() ? nullptr : &at->second;
        return found == nullptr || !found->is_in_creation;
    };
    if (limit_s == 0) {
        known.creation_over.wait(lock, is_over);
    } else {
        known.creation_over.wait_for(lock, std::chrono::duration<double>(limit_s), is_over);
    }
    return found;
}

double timeout_s() {
    return diomp::api::g_runtime.load()->connection().engine().options().timeout_s;
}

result<ompx_group_t> find_for_region(ompx_group_t handle) {
    host_groups &known = groups_of_host();
    std::unique_lock lock(known.mutex);
    const region_group *const found = await(known, lock, handle, timeout_s());
    if (found == nullptr) {
        return OMPX_GROUP_NONE;
    }
    if (found->is_in_creation) {
        return error(OMPX_ERR_TIMEOUT, "the other members' devices have not created the group yet",
                     "see whether a device of another rank stands still");
    }
    if (found->own == nullptr) {
        return error(OMPX_ERR_STATE,
                     "the devices could not create a group for it: " + found->failure);
    }
    return found->own;
}

/// Creates the group of regions: as soon as all sessions have heard of it, and not when regions
/// name it, since a call that waits for other members' regions would delay requests of its own.
void create_for_regions(const session_group &of_host) {
    auto made = diomp::api::g_runtime.load()->collectives().groups().create(
        of_host.ranks, session_group::of_regions(of_host.group));
    host_groups &known = groups_of_host();
    std::lock_guard const guard(known.mutex);
    auto const waiting = known.of_regions.find(of_host.handle);
    if (waiting != known.of_regions.end()) { // the host has not given up the group meanwhile
        waiting->second = {false, made ? made.value() : nullptr,
                           made ? std::string() : made.failure().message()};
    }
    known.creation_over.notify_all();
}

} // namespace

void diomp::api::use_groups_of_host(runtime::runtime &running) {
    running.collectives().groups().find_groups_of_host(find_for_region);
}

diomp::result<ompx_group_t> diomp::api::group_for_call(runtime::runtime &running,
                                                       const session_call &call) {
    host_groups &known = groups_of_host();
    {
        std::lock_guard const guard(known.mutex);
        if (auto const found = known.created.find(call.group); found != known.created.end()) {
            return found->second;
        }
    }
    if (call.ranks.empty()) {
        return error(OMPX_ERR_STATE, "the session does not have the group of the call");
    }
    // Not under the lock, since it waits for the other members. A host makes the calls of one group
    // one after another, those of groups of the same members in any order.
    auto made = running.collectives().groups().create(call.ranks, call.group);
    DIOMP_TRY(made);
    std::lock_guard const guard(known.mutex);
    known.created[call.group] = made.value();
    return made;
}

diomp::status diomp::api::free_group_for(runtime::runtime &running, std::uint64_t group) {
    host_groups &known = groups_of_host();
    ompx_group_t freed = nullptr;
    {
        std::lock_guard const guard(known.mutex);
        auto const found = known.created.find(group);
        if (found == known.created.end()) {
            return {};
        }
        freed = found->second;
        known.created.erase(found);
    }
    return running.collectives().free_group(freed);
}

extern "C" {

[[gnu::visibility("default")]] int32_t diomp_session_group(const char *group,
                                                           size_t group_bytes) noexcept;
int32_t diomp_session_group(const char *group, size_t group_bytes) noexcept {
    auto decoded = diomp::device_coll::decode_session_group({group, group_bytes});
    if (!decoded) {
        return 0;
    }
    session_group const &described = decoded.value();
    host_groups &known = groups_of_host();
    std::unique_lock lock(known.mutex);
    if (!described.ranks.empty()) {
        known.of_regions[described.handle] = {};
        lock.unlock();
        diomp::start_service_thread("diomp-group", [described] {
            create_for_regions(described);
        }).detach();
        return 0;
    }
    double const own_limit = timeout_s();
    double const limit_s = known.is_stuck   ? 1e-3
                           : own_limit == 0 ? std::chrono::duration<double>(creation_limit).count()
                                            : own_limit;
    const region_group *const found = await(known, lock, described.handle, limit_s);
    known.is_stuck = found != nullptr && found->is_in_creation;
    bool const exists = found != nullptr && found->own != nullptr;
    if (exists) { // until the hosts of all members have agreed to free it
        known.created[session_group::of_regions(described.group)] = found->own;
    }
    known.of_regions.erase(described.handle);
    return exists ? 1 : 0;
}

} // extern "C"
