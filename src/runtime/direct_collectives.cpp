// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/direct_collectives.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace diomp::runtime {
namespace {

using collective::collectives;
using collective::device_buffers;
using collective::device_plan;
using collective::request;

int device_of(const group::group &members, std::size_t endpoint) {
    return members.endpoints()[endpoint].device;
}

device::reduction reduction_of(const group::group &members, const request &asked) {
    return {asked.type, asked.op, members.count()};
}

/// The first rank of the group that told 0 in the last meeting, if any.
std::optional<world_rank> first_refusal(group::group &members) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
        if (members.payload_of(rank)[0] == 0) {
            return members.members()[rank];
        }
    }
    return std::nullopt;
}

status start_plan(device::queue &on, const device::reduction &how, const device_plan &what) {
    if (what.reduce_to != nullptr) {
        DIOMP_TRY(on.reduce(how, what.reduce_to, what.operands, what.count));
    }
    for (const collective::device_copy &each : what.copies) {
        DIOMP_TRY(on.copy(each.dst, each.src, each.nbytes));
    }
    return {};
}

} // namespace

direct_collectives::told_buffers direct_collectives::describe(const group::group &members,
                                                              const request &asked,
                                                              std::size_t place,
                                                              const buffers &own) const {
    told_buffers told;
    std::size_t const member = members.own(place);
    told.device = device_of(members, member);
    bool is_fit =
        collective::fits_device_plan(asked, {own.dst.address, own.src.address}, own.use, member);
    auto const locate = [&](const offload::end &at, std::size_t nbytes, std::uint64_t &into) {
        if (nbytes > 0) {
            auto const found = devices_.place_in_segment(told.device, at);
            into = found.value_or(0);
            is_fit = is_fit && found.has_value();
        }
    };
    locate(own.dst, own.use.dst_bytes, told.dst);
    locate(own.src, own.use.src_bytes, told.src);
    if (is_fit && collective::is_reduction(asked.what)) {
        offload::accelerator const &on = *devices_.accelerator_of(told.device);
        is_fit = on.backend->can_reduce(on.id, reduction_of(members, asked));
    }
    told.is_fit = is_fit ? 1 : 0;
    return told;
}

result<device_plan> direct_collectives::plan(const group::group &members, const request &asked,
                                             const std::vector<told_buffers> &all,
                                             std::size_t place) {
    std::size_t const self = members.own(place);
    offload::accelerator const &by = *devices_.accelerator_of(device_of(members, self));
    std::vector<device_buffers> reached(all.size());
    for (std::size_t member = 0; member < all.size(); ++member) {
        world_rank const owner = members.members()[members.endpoints()[member].member];
        auto const use = collective::use_of(asked, {}, members.count(), member);
        const told_buffers &told = all[member];
        if (use.dst_bytes > 0) {
            auto dst = devices_.reach(owner, {told.device, told.dst}, use.dst_bytes, by);
            DIOMP_TRY(dst);
            reached[member].dst = dst.value();
        }
        if (use.src_bytes > 0) {
            auto src = devices_.reach(owner, {told.device, told.src}, use.src_bytes, by);
            DIOMP_TRY(src);
            reached[member].src = src.value();
        }
    }
    return collective::make_device_plan(asked, reached, self);
}

result<std::vector<device_plan>>
direct_collectives::plan_own(const group::group &members, const request &asked,
                             const std::vector<told_buffers> &all) {
    std::vector<device_plan> plans;
    for (std::size_t place = 0; place < members.num_own(); ++place) {
        auto made = plan(members, asked, all, place);
        DIOMP_TRY(made);
        plans.push_back(made.take());
    }
    return plans;
}

status direct_collectives::carry_out(const group::group &members, const request &asked,
                                     const std::vector<device_plan> &plans) {
    device::reduction const how = reduction_of(members, asked);
    std::optional<error> failure;
    auto const note = [&](error why) {
        if (!failure) {
            failure.emplace(std::move(why));
        }
    };
    std::vector<std::pair<const offload::accelerator *, device::ticket>> going;
    for (std::size_t place = 0; place < plans.size(); ++place) {
        offload::accelerator const &by =
            *devices_.accelerator_of(device_of(members, members.own(place)));
        auto started = by.streams->start(
            by.id, [&](device::queue &on) { return start_plan(on, how, plans[place]); });
        if (started) {
            going.emplace_back(&by, started.take());
        } else {
            note(started.take_failure());
        }
    }
    for (auto const &[by, ticket] : going) {
        if (status waited = devices_.wait_for(*by, ticket); !waited) {
            note(waited.take_failure());
        }
    }
    if (failure) {
        return std::move(*failure);
    }
    return {};
}

result<direct_collectives::outcome>
direct_collectives::run(group::group &members, const request &asked, std::span<const buffers> own) {
    std::vector<told_buffers> told;
    told.reserve(own.size());
    for (std::size_t place = 0; place < own.size(); ++place) {
        told.push_back(describe(members, asked, place, own[place]));
    }
    DIOMP_TRY(collectives::meet(members, asked, {}, std::as_bytes(std::span(told))));
    std::vector<told_buffers> all(members.count());
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
        const std::byte *from = members.here().stage_of(rank);
        for (std::uint32_t const member : members.endpoints().of(rank)) {
            std::memcpy(&all[member], from, sizeof(told_buffers));
            from += sizeof(told_buffers);
        }
    }
    if (std::ranges::any_of(all, [](const told_buffers &each) { return each.is_fit == 0; })) {
        return outcome::not_so;
    }
    auto plans = plan_own(members, asked, all);
    if (!plans) {
        log(log_level::info, "no collectives from device to device: {}", plans.failure().message());
    }
    DIOMP_TRY(collectives::meet(members, asked, {plans ? 1U : 0U}));
    if (first_refusal(members)) {
        return outcome::unreachable;
    }
    status worked = carry_out(members, asked, plans.value());
    status met = collectives::meet(members, asked, {worked ? 1U : 0U});
    DIOMP_TRY(worked);
    DIOMP_TRY(met);
    if (auto const failed = first_refusal(members)) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("a device of rank {} failed in its part of {}: the buffers have "
                                 "any contents",
                                 failed->value(), sync::name_of(asked.what)),
                     "that rank's error says more");
    }
    log(log_level::debug, "{} of {} elements on {} endpoints: from device to device",
        sync::name_of(asked.what), asked.amount, members.count());
    return outcome::done;
}

} // namespace diomp::runtime
