// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/direct_collectives.h"

#include "base/log.h"
#include "coll/device_plan.h"
#include "device_coll/internal/buffer_info.h"
#include "device_coll/internal/device_scratch.h"
#include "group/group.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/path_selector.h"
#include "offload/sides.h"
#include "offload/stream_copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace diomp::device_coll {
namespace {

using coll::collectives;
using coll::device_buffers;
using coll::device_plan;
using coll::request;
using sync::operation;

int device_of(const group::group &members, std::size_t endpoint) {
    return members.endpoints()[endpoint].device;
}

device::reduction reduction_of(const group::group &members, const request &args) {
    return {args.type, args.op, members.count()};
}

/// The call with the block lists of one own endpoint.
request call_of(const request &args, const direct_collectives::buffers &own) {
    request made = args;
    made.blocks = own.blocks;
    return made;
}

/// Sent by each rank in the second and third round.
enum class vote : std::uint64_t { no, yes, skip_this_call };

/// The first rank of the group with this vote in the last round, if any.
std::optional<world_rank> first_with_vote(group::group &members, vote what) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
        if (members.payload_of(rank)[0] == static_cast<std::uint64_t>(what)) {
            return members.members()[rank];
        }
    }
    return std::nullopt;
}

status arrive_and_wait(group::group &members, const request &args, vote what) {
    return collectives::arrive_and_wait(members, args, {static_cast<std::uint64_t>(what)});
}

/// The sizes of an alltoallv are known only after the first round.
bool is_small(const request &args, const call_info &info, std::size_t from_bytes) {
    return args.what == operation::alltoallv &&
           info.largest_block() < std::max<std::size_t>(1, from_bytes);
}

/// Whether the block sizes that own endpoints expect in an alltoallv equal those that the senders
/// passed.
bool sizes_agree(const group::group &members, const request &args,
                 std::span<const direct_collectives::buffers> own, const call_info &info) {
    for (std::size_t own_index = 0; args.what == operation::alltoallv && own_index < own.size();
         ++own_index) {
        const std::vector<std::size_t> &wanted = own[own_index].blocks->dst.nbytes;
        for (std::size_t from = 0; from < wanted.size(); ++from) {
            if (info.block(from, members.own(own_index)).nbytes != wanted[from]) {
                return false;
            }
        }
    }
    return true;
}

/// A full device skips this call only: it may have space for the next one.
template <typename Plans>
vote vote_of(const result<Plans> &made, bool sizes_agree) {
    if (!made && made.failure().code() != OMPX_ERR_NOMEM) {
        return vote::no;
    }
    return made && sizes_agree ? vote::yes : vote::skip_this_call;
}

status start_plan(device::queue &on, const device::reduction &how, const device_plan &what) {
    for (const coll::device_reduction &each : what.reductions) {
        DIOMP_TRY(on.reduce(how, each.to, each.operands, each.count));
    }
    for (const coll::device_copy &each : what.copies) {
        DIOMP_TRY(on.copy(each.dst, each.src, each.nbytes));
    }
    return {};
}

} // namespace

direct_collectives::direct_collectives(offload::devices &devices)
    : devices_(devices), scratch_(std::make_unique<device_scratch>()) {}

direct_collectives::~direct_collectives() = default;

bool direct_collectives::is_eligible(const group::group &members, const coll::request &args,
                                     std::size_t own_index, const buffers &own) const {
    return describe(members, args, own_index, own).is_eligible != 0;
}

struct direct_collectives::own_plan {
    std::vector<coll::device_plan> phases;
    device_scratch::lease scratch;
};

struct direct_collectives::prepared {
    outcome what = outcome::not_applicable;
    std::vector<own_plan> plans; ///< [own_index]
};

buffer_info direct_collectives::describe(const group::group &members, const request &args,
                                         std::size_t own_index, const buffers &own) const {
    buffer_info info;
    std::size_t const member = members.own(own_index);
    info.device = device_of(members, member);
    info.dst_bytes = own.use.dst_bytes;
    info.src_bytes = own.use.src_bytes;
    bool is_eligible = coll::fits_device_plan(call_of(args, own),
                                              {own.dst.address, own.src.address}, own.use, member);
    auto const locate = [&](const offload::device_ptr &at, std::size_t nbytes,
                            std::uint64_t &into) {
        if (nbytes > 0) {
            auto const *const segment =
                at.on == nullptr ? nullptr : devices_.segments().table().find(info.device);
            auto const found = segment == nullptr ? std::nullopt : segment->offset_of(at.address);
            into = found.value_or(0);
            is_eligible = is_eligible && found.has_value();
        }
    };
    locate(own.dst, own.use.dst_bytes, info.dst);
    locate(own.src, own.use.src_bytes, info.src);
    if (is_eligible && coll::is_reduction(args.what)) {
        offload::accelerator const &on = *devices_.segments().accelerator_of(info.device);
        is_eligible = on.backend->can_reduce(on.id, reduction_of(members, args));
    }
    info.is_eligible = is_eligible ? 1 : 0;
    return info;
}

result<call_info> direct_collectives::exchange_info(group::group &members, const request &args,
                                                    std::span<const buffers> own) const {
    std::vector<buffer_info> info;
    std::vector<const coll::block_lists *> lists;
    for (std::size_t own_index = 0; own_index < own.size(); ++own_index) {
        info.push_back(describe(members, args, own_index, own[own_index]));
        if (own[own_index].blocks) {
            lists.push_back(own[own_index].blocks.get());
        }
    }
    DIOMP_TRY(collectives::arrive_and_wait(members, args, {}, call_info::pack(info, lists)));
    return call_info(members, args);
}

result<direct_collectives::own_plan> direct_collectives::plan(const group::group &members,
                                                              const request &args,
                                                              const call_info &info,
                                                              std::size_t own_index) {
    std::size_t const self = members.own(own_index);
    offload::accelerator const &by = *devices_.segments().accelerator_of(device_of(members, self));
    std::vector<device_buffers> remote(members.count());
    for (std::size_t member = 0; member < remote.size(); ++member) {
        world_rank const owner = members.members()[members.endpoints()[member].member];
        const buffer_info &there = info.all()[member];
        if (there.dst_bytes > 0) {
            auto dst =
                devices_.paths().address_for(owner, {there.device, there.dst}, there.dst_bytes, by);
            DIOMP_TRY(dst);
            remote[member].dst = dst.value();
        }
        if (there.src_bytes > 0) {
            auto src =
                devices_.paths().address_for(owner, {there.device, there.src}, there.src_bytes, by);
            DIOMP_TRY(src);
            remote[member].src = src.value();
        }
        if (coll::has_block_lists(args.what) && args.what != operation::allgatherv) {
            remote[member].before = info.block(member, self).before;
        }
    }
    if (!coll::needs_scratch(args, remote)) {
        return own_plan{coll::make_device_plans(args, remote, self), {}};
    }
    auto scratch = scratch_->take(by);
    DIOMP_TRY(scratch);
    auto phases = coll::make_device_plans(args, remote, self, scratch.value().bytes());
    return own_plan{std::move(phases), scratch.take()};
}

result<std::vector<direct_collectives::own_plan>>
direct_collectives::plan_own(const group::group &members, const request &args,
                             std::span<const buffers> own, const call_info &info) {
    std::vector<own_plan> plans;
    for (std::size_t own_index = 0; own_index < members.num_own(); ++own_index) {
        auto made = plan(members, call_of(args, own[own_index]), info, own_index);
        DIOMP_TRY(made);
        plans.push_back(made.take());
    }
    return plans;
}

status direct_collectives::run_on_own_devices(const group::group &members, const request &args,
                                              const std::vector<own_plan> &plans,
                                              std::size_t phase) {
    device::reduction const how = reduction_of(members, args);
    std::optional<error> failure;
    auto const note = [&](error why) {
        if (!failure) {
            failure.emplace(std::move(why));
        }
    };
    std::vector<std::pair<const offload::accelerator *, device::ticket>> in_flight;
    for (std::size_t own_index = 0; own_index < plans.size(); ++own_index) {
        offload::accelerator const &by =
            *devices_.segments().accelerator_of(device_of(members, members.own(own_index)));
        auto started = by.streams->start(by.id, [&](device::queue &on) {
            return start_plan(on, how, plans[own_index].phases[phase]);
        });
        if (started) {
            in_flight.emplace_back(&by, started.take());
        } else {
            note(started.take_failure());
        }
    }
    for (auto const &[by, ticket] : in_flight) {
        if (status waited = devices_.copies().wait_for(*by, ticket); !waited) {
            note(waited.take_failure());
        }
    }
    if (failure) {
        return std::move(*failure);
    }
    return {};
}

status direct_collectives::run_phase(group::group &members, const request &args,
                                     const std::vector<own_plan> &plans, std::size_t phase) {
    status worked = run_on_own_devices(members, args, plans, phase);
    status met = arrive_and_wait(members, args, worked ? vote::yes : vote::no);
    DIOMP_TRY(worked);
    DIOMP_TRY(met);
    if (auto const failed = first_with_vote(members, vote::no)) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("a device of rank {} failed in {}: the contents of the "
                                 "buffers are undefined",
                                 failed->value(), sync::name_of(args.what)),
                     "see that rank's error");
    }
    return {};
}

result<direct_collectives::prepared> direct_collectives::prepare(group::group &members,
                                                                 const request &args,
                                                                 std::span<const buffers> own,
                                                                 std::size_t from_bytes) {
    if (!call_info::fits_stage_buffer(members, args)) {
        return prepared{};
    }
    auto info = exchange_info(members, args, own);
    DIOMP_TRY(info);
    if (!info.value().all_fit() || is_small(args, info.value(), from_bytes)) {
        return prepared{};
    }
    auto plans = plan_own(members, args, own, info.value());
    if (!plans) {
        log(log_level::info, "no collective from device to device: {}", plans.failure().message());
    }
    DIOMP_TRY(arrive_and_wait(members, args,
                              vote_of(plans, sizes_agree(members, args, own, info.value()))));
    if (first_with_vote(members, vote::no)) {
        return prepared{outcome::unreachable, {}};
    }
    if (first_with_vote(members, vote::skip_this_call)) {
        return prepared{};
    }
    return prepared{outcome::done, plans.take()};
}

result<direct_collectives::outcome> direct_collectives::probe(group::group &members,
                                                              const request &args,
                                                              std::span<const buffers> own) {
    auto made = prepare(members, args, own, 0);
    DIOMP_TRY(made);
    return made.value().what;
}

result<direct_collectives::outcome> direct_collectives::run(group::group &members,
                                                            const request &args,
                                                            std::span<const buffers> own,
                                                            std::size_t from_bytes) {
    auto made = prepare(members, args, own, from_bytes);
    DIOMP_TRY(made);
    if (made.value().what != outcome::done) {
        return made.value().what;
    }
    const std::vector<own_plan> &plans = made.value().plans;
    for (std::size_t phase = 0; phase < plans.front().phases.size(); ++phase) {
        DIOMP_TRY(run_phase(members, args, plans, phase));
    }
    log(log_level::debug, "{}{} on {} endpoints: from device to device", sync::name_of(args.what),
        coll::has_block_lists(args.what) ? "" : fmt::format(" of {} elements", args.amount),
        members.count());
    return outcome::done;
}

} // namespace diomp::device_coll
