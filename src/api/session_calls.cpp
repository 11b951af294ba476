// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls that a host makes by the session of its device.
#include "api/internal/session.h"
#include "api/internal/state.h"
#include "coll/collective.h"
#include "device_coll/device_collectives.h"
#include "device_coll/session_call.h"
#include "group/registry.h"
#include "offload/mover.h"
#include "offload/offload.h"
#include "offload/session_transfer.h"
#include "rma/rma.h"
#include "runtime/runtime.h"

#include <map>
#include <mutex>
#include <utility>

namespace {

using diomp::error;
using diomp::result;
using diomp::status;
using diomp::world_rank;
using diomp::api::g_session;

constexpr int gpu = 0; ///< the number of the session's GPU

/// The groups of hosts whose calls this session makes, by the hosts' ids. They are not those of
/// regions, which may make calls at the same time.
struct host_groups {
    std::mutex mutex; ///< leaf lock
    std::map<std::uint64_t, ompx_group_t> all;
};
host_groups &groups_of_hosts() {
    static auto &only = *new host_groups; // the library has no static object with a destructor
    return only;
}

result<ompx_group_t> find_group(diomp::runtime::runtime &running,
                                const diomp::device_coll::session_call &call) {
    host_groups &known = groups_of_hosts();
    {
        std::lock_guard const guard(known.mutex);
        if (auto const found = known.all.find(call.group); found != known.all.end()) {
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
    known.all[call.group] = made.value();
    return made;
}

status free_group(diomp::runtime::runtime &running, std::uint64_t of_host) {
    host_groups &known = groups_of_hosts();
    ompx_group_t freed = nullptr;
    {
        std::lock_guard const guard(known.mutex);
        auto const found = known.all.find(of_host);
        if (found == known.all.end()) {
            return {};
        }
        freed = found->second;
        known.all.erase(found);
    }
    return running.collectives().free_group(freed);
}

status run_collective(diomp::runtime::runtime &running, std::string_view encoded) {
    auto call = diomp::device_coll::decode_session_call(encoded);
    DIOMP_TRY(call);
    if (call.value().args.what == diomp::sync::operation::none) {
        return free_group(running, call.value().group);
    }
    auto handle = find_group(running, call.value());
    DIOMP_TRY(handle);
    auto members = running.collectives().groups().find(handle.value());
    DIOMP_TRY(members);
    return g_session->plugin == nullptr
               ? running.collectives().on_host().run(*members.value(), call.value().args)
               : running.collectives().on_devices().run(*members.value(), call.value().args, gpu);
}

/// Between GPUs; completes it.
status run_transfer(diomp::runtime::runtime &running, std::string_view encoded) {
    auto decoded = diomp::offload::decode_session_transfer(encoded);
    DIOMP_TRY(decoded);
    diomp::offload::session_transfer const &call = decoded.value();
    DIOMP_TRY(diomp::api::check_rank(running, call.rank));
    auto const pointer = [](std::uint64_t address) {
        return reinterpret_cast<void *>(address); // NOLINT(performance-no-int-to-ptr)
    };
    bool const is_put = call.dir == diomp::rma::direction::put;
    world_rank const rank(call.rank);
    auto moved = running.devices().mover().move_runs(
        call.dir, rank, {pointer(call.remote), gpu, is_put ? "dst" : "src"},
        {pointer(call.local), gpu, is_put ? "src" : "dst"}, call.runs);
    DIOMP_TRY(moved);
    return is_put ? running.transfers().flush(rank) : status();
}

status run_call(std::string_view encoded) {
    diomp::runtime::runtime *const running = diomp::api::g_runtime.load();
    if (running == nullptr) {
        return error(OMPX_ERR_STATE, "the runtime of regions has ended");
    }
    return diomp::offload::is_session_transfer(encoded) ? run_transfer(*running, encoded)
                                                        : run_collective(*running, encoded);
}

} // namespace

extern "C" {

[[gnu::visibility("default")]] void diomp_session_call(const char *call, size_t call_bytes,
                                                       diomp_session_failure fail,
                                                       void *into) noexcept;
void diomp_session_call(const char *call, size_t call_bytes, diomp_session_failure fail,
                        void *into) noexcept {
    if (status const done = run_call({call, call_bytes}); !done) {
        fail(into, done.failure().code(), done.failure().message().c_str(),
             done.failure().remedy().c_str());
    }
}

} // extern "C"
