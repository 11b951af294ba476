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

#include <utility>

namespace {

using diomp::error;
using diomp::result;
using diomp::status;
using diomp::world_rank;
using diomp::api::g_session;

constexpr int gpu = 0; ///< the number of the session's GPU

status run_collective(diomp::runtime::runtime &running, std::string_view encoded) {
    auto call = diomp::device_coll::decode_session_call(encoded);
    DIOMP_TRY(call);
    if (call.value().args.what == diomp::sync::operation::none) {
        return diomp::api::free_group_for(running, call.value().group);
    }
    auto handle = diomp::api::group_for_call(running, call.value());
    DIOMP_TRY(handle);
    auto members = running.collectives().groups().find_own(handle.value());
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
