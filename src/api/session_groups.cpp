// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups of the host in a session: in calls that the host makes by the session, and in calls of
// regions, which name them by their handles on the host. Each has a group of sessions of its own,
// since both may make calls at the same time.
#include "api/internal/session.h"
#include "api/internal/state.h"
#include "base/service_thread.h"
#include "device_coll/session_call.h"
#include "group/registry.h"
#include "runtime/runtime.h"

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
    std::mutex mutex;                              ///< leaf lock
    std::condition_variable creation_over;         ///< of a group of regions
    std::map<std::uint64_t, ompx_group_t> created; ///< by session_call::group
    std::map<ompx_group_t, region_group> of_regions;
};

host_groups &groups_of_host() {
    static auto &only = *new host_groups; // the library has no static object with a destructor
    return only;
}

/// Waits until the group is not under creation, which does not depend on regions. Null: there is no
/// such handle.
const region_group *await(host_groups &known, std::unique_lock<std::mutex> &lock,
                          ompx_group_t handle) {
    const region_group *found = nullptr;
    known.creation_over.wait(lock, [&] {
        auto const at = known.of_regions.find(handle);
        found = at == known.of_regions.end() ? nullptr : &at->second;
        return found == nullptr || !found->is_in_creation;
    });
    return found;
}

result<ompx_group_t> find_for_region(ompx_group_t handle) {
    host_groups &known = groups_of_host();
    std::unique_lock lock(known.mutex);
    const region_group *const found = await(known, lock, handle);
    if (found == nullptr) {
        return OMPX_GROUP_NONE;
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
    known.of_regions[of_host.handle] = {false, made ? made.value() : nullptr,
                                        made ? std::string() : made.failure().message()};
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
    const region_group *const found = await(known, lock, described.handle);
    bool const exists = found != nullptr && found->own != nullptr;
    if (exists) { // until the hosts of all members have agreed to free it
        known.created[session_group::of_regions(described.group)] = found->own;
    }
    known.of_regions.erase(described.handle);
    return exists ? 1 : 0;
}

} // extern "C"
