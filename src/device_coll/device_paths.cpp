// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of device_calls, and how a checked collective on devices runs: in the vendor's library,
// from device to device, or through host memory.
#include "base/log.h"
#include "coll/device_plan.h"
#include "device_coll/internal/device_calls.h"
#include "device_coll/internal/host_copies.h"
#include "device_coll/internal/node_collectives.h"
#include "device_coll/internal/remote_calls.h"
#include "device_coll/vendor/plan.h"
#include "device_coll/vendor/vendor_group.h"
#include "offload/device_segments.h"
#include "offload/offload.h"

#include <fmt/core.h>

namespace diomp::device_coll {
namespace {

namespace vendor = device_coll::vendor;
using coll::request;
using sync::operation;

/// A call without data is a barrier and needs no library.
bool runs_in_vendor_library(const request &args) {
    return (args.amount > 0 || args.blocks != nullptr) && vendor::supports(args);
}

/// All members get the same result.
bool runs_on_devices(const group::group &members, const request &args, std::size_t from_bytes) {
    return from_bytes != vendor_choice::paths::never && coll::has_device_plan(args) &&
           (!members.spans_nodes() || node_collectives::has_plan(args)) &&
           (args.what == operation::alltoallv || coll::largest_block(args) >= from_bytes);
}

} // namespace

device_calls::device_calls(coll::collectives &collectives, offload::devices &devices,
                           messaging::engine &engine, group::group_registry &groups, options chosen)
    : collectives_(collectives), devices_(devices), segments_(devices.segments().table()),
      engine_(engine), vendors_(collectives, devices, groups, std::move(chosen)), direct_(devices),
      node_collectives_(std::make_unique<node_collectives>(collectives, devices, direct_)),
      copies_(std::make_unique<host_copies>(collectives, devices)),
      remote_(std::make_unique<remote_calls>(collectives, devices, *copies_)) {}

device_calls::~device_calls() = default;

status device_calls::run_locked(group::group &members, checked_call &call,
                                const vendor_choice::paths &by) {
    if (by.communicators != nullptr && runs_in_vendor_library(call.args)) {
        return run_in_vendor_library(members, call, *by.communicators);
    }
    if (by.has_remote) {
        return remote_->run(members, call);
    }
    std::size_t const from_bytes =
        coll::is_reduction(call.args.what) ? by.reduce_from_bytes : by.direct_from_bytes;
    if (runs_on_devices(members, call.args, from_bytes)) {
        auto done = run_device_to_device(members, call, from_bytes);
        DIOMP_TRY(done);
        if (done.value()) {
            return {};
        }
    }
    return run_through_host(members, call);
}

result<bool> device_calls::run_device_to_device(group::group &members, const checked_call &call,
                                                std::size_t from_bytes) {
    std::vector<direct_collectives::buffers> own;
    own.reserve(call.own.size());
    for (std::size_t i = 0; i < call.own.size(); ++i) {
        const endpoint_views &each = call.own[i];
        own.push_back({each.dst.location, each.src.location, each.use, call.blocks[i]});
    }
    auto outcome = members.spans_nodes() ? node_collectives_->run(members, call.args, own)
                                         : direct_.run(members, call.args, own, from_bytes);
    DIOMP_TRY(outcome);
    if (outcome.value() == direct_collectives::outcome::unreachable) {
        log(log_level::info,
            "collectives of a group of {} endpoints go through host memory from now on: not "
            "all devices can access each other's memory",
            members.count());
        vendors_.disable_device_to_device(members);
    }
    return outcome.value() == direct_collectives::outcome::done;
}

// The vendor's library hangs if members make different calls, so the calls are compared first.
status device_calls::run_in_vendor_library(group::group &members, const checked_call &call,
                                           vendor::vendor_group &communicators) {
    DIOMP_TRY(collectives_.compare(members, call.args));
    std::vector<coll::endpoint_buffers> own;
    own.reserve(call.own.size());
    for (std::size_t i = 0; i < call.own.size(); ++i) {
        own.push_back(
            {call.own[i].dst.location.address, call.own[i].src.location.address, call.blocks[i]});
    }
    return communicators.run(call.args, own, [&](function_ref<bool()> is_over) {
        return wait_for_library(is_over, [&] { return communicators.describe(); });
    });
}

status device_calls::run_through_host(group::group &members, checked_call &call) {
    DIOMP_TRY(copies_->prepare(call));
    return copies_->run(members, call);
}

} // namespace diomp::device_coll
