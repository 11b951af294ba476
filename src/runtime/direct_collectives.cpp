// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/direct_collectives.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace diomp::runtime {
namespace {

using collective::collectives;
using collective::device_buffers;
using collective::device_plan;
using collective::request;
using sync::operation;

int device_of(const group::group &members, std::size_t endpoint) {
    return members.endpoints()[endpoint].device;
}

device::reduction reduction_of(const group::group &members, const request &asked) {
    return {asked.type, asked.op, members.count()};
}

/// The call as own endpoint makes it.
request call_of(const request &asked, const direct_collectives::buffers &own) {
    request made = asked;
    made.blocks = own.blocks;
    return made;
}

/// What ranks tell in the second and third meeting.
enum class answer : std::uint64_t { no, yes, not_this_call };

/// The first rank of the group that told so in the last meeting, if any.
std::optional<world_rank> first_that_told(group::group &members, answer what) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
        if (members.payload_of(rank)[0] == static_cast<std::uint64_t>(what)) {
            return members.members()[rank];
        }
    }
    return std::nullopt;
}

status meet(group::group &members, const request &asked, answer what) {
    return collectives::meet(members, asked, {static_cast<std::uint64_t>(what)});
}

/// Of an alltoallv only now somebody knows how large it is.
bool is_small(const request &asked, const told_call &told, std::size_t from_bytes) {
    return asked.what == operation::alltoallv &&
           told.largest_block() < std::max<std::size_t>(1, from_bytes);
}

/// What own endpoints expect in an alltoallv is what the others have for them.
bool sizes_agree(const group::group &members, const request &asked,
                 std::span<const direct_collectives::buffers> own, const told_call &told) {
    for (std::size_t place = 0; asked.what == operation::alltoallv && place < own.size(); ++place) {
        const std::vector<std::size_t> &wanted = own[place].blocks->dst.nbytes;
        for (std::size_t from = 0; from < wanted.size(); ++from) {
            if (told.block(from, members.own(place)).nbytes != wanted[from]) {
                return false;
            }
        }
    }
    return true;
}

/// Devices that are full today may have room tomorrow.
template <typename Plans>
answer answer_of(const result<Plans> &made, bool sizes_agree) {
    if (!made && made.failure().code() != OMPX_ERR_NOMEM) {
        return answer::no;
    }
    return made && sizes_agree ? answer::yes : answer::not_this_call;
}

status start_plan(device::queue &on, const device::reduction &how, const device_plan &what) {
    for (const collective::device_reduction &each : what.reductions) {
        DIOMP_TRY(on.reduce(how, each.to, each.operands, each.count));
    }
    for (const collective::device_copy &each : what.copies) {
        DIOMP_TRY(on.copy(each.dst, each.src, each.nbytes));
    }
    return {};
}

} // namespace

told_buffers direct_collectives::describe(const group::group &members, const request &asked,
                                          std::size_t place, const buffers &own) const {
    told_buffers told;
    std::size_t const member = members.own(place);
    told.device = device_of(members, member);
    told.dst_bytes = own.use.dst_bytes;
    told.src_bytes = own.use.src_bytes;
    bool is_fit = collective::fits_device_plan(call_of(asked, own),
                                               {own.dst.address, own.src.address}, own.use, member);
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

result<told_call> direct_collectives::tell(group::group &members, const request &asked,
                                           std::span<const buffers> own) const {
    std::vector<told_buffers> told;
    std::vector<const collective::block_lists *> lists;
    for (std::size_t place = 0; place < own.size(); ++place) {
        told.push_back(describe(members, asked, place, own[place]));
        if (own[place].blocks) {
            lists.push_back(own[place].blocks.get());
        }
    }
    DIOMP_TRY(collectives::meet(members, asked, {}, told_call::pack(told, lists)));
    return told_call(members, asked);
}

result<direct_collectives::own_plan> direct_collectives::plan(const group::group &members,
                                                              const request &asked,
                                                              const told_call &told,
                                                              std::size_t place) {
    std::size_t const self = members.own(place);
    offload::accelerator const &by = *devices_.accelerator_of(device_of(members, self));
    std::vector<device_buffers> reached(members.count());
    for (std::size_t member = 0; member < reached.size(); ++member) {
        world_rank const owner = members.members()[members.endpoints()[member].member];
        const told_buffers &there = told.all()[member];
        if (there.dst_bytes > 0) {
            auto dst = devices_.reach(owner, {there.device, there.dst}, there.dst_bytes, by);
            DIOMP_TRY(dst);
            reached[member].dst = dst.value();
        }
        if (there.src_bytes > 0) {
            auto src = devices_.reach(owner, {there.device, there.src}, there.src_bytes, by);
            DIOMP_TRY(src);
            reached[member].src = src.value();
        }
        if (collective::has_block_lists(asked.what) && asked.what != operation::allgatherv) {
            reached[member].before = told.block(member, self).before;
        }
    }
    if (!collective::needs_piece_aside(asked, reached)) {
        return own_plan{collective::make_device_plans(asked, reached, self), {}};
    }
    auto aside = scratch_.take(by);
    DIOMP_TRY(aside);
    auto phases = collective::make_device_plans(asked, reached, self, aside.value().bytes());
    return own_plan{std::move(phases), aside.take()};
}

result<std::vector<direct_collectives::own_plan>>
direct_collectives::plan_own(const group::group &members, const request &asked,
                             std::span<const buffers> own, const told_call &told) {
    std::vector<own_plan> plans;
    for (std::size_t place = 0; place < members.num_own(); ++place) {
        auto made = plan(members, call_of(asked, own[place]), told, place);
        DIOMP_TRY(made);
        plans.push_back(made.take());
    }
    return plans;
}

status direct_collectives::carry_out(const group::group &members, const request &asked,
                                     const std::vector<own_plan> &plans, std::size_t phase) {
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
        auto started = by.streams->start(by.id, [&](device::queue &on) {
            return start_plan(on, how, plans[place].phases[phase]);
        });
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

status direct_collectives::run_phase(group::group &members, const request &asked,
                                     const std::vector<own_plan> &plans, std::size_t phase) {
    status worked = carry_out(members, asked, plans, phase);
    status met = meet(members, asked, worked ? answer::yes : answer::no);
    DIOMP_TRY(worked);
    DIOMP_TRY(met);
    if (auto const failed = first_that_told(members, answer::no)) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("a device of rank {} failed in its part of {}: the buffers have "
                                 "any contents",
                                 failed->value(), sync::name_of(asked.what)),
                     "that rank's error says more");
    }
    return {};
}

result<direct_collectives::prepared> direct_collectives::prepare(group::group &members,
                                                                 const request &asked,
                                                                 std::span<const buffers> own,
                                                                 std::size_t from_bytes) {
    if (!told_call::has_room(members, asked)) {
        return prepared{};
    }
    auto told = tell(members, asked, own);
    DIOMP_TRY(told);
    if (!told.value().all_fit() || is_small(asked, told.value(), from_bytes)) {
        return prepared{};
    }
    auto plans = plan_own(members, asked, own, told.value());
    if (!plans) {
        log(log_level::info, "no collectives from device to device: {}", plans.failure().message());
    }
    DIOMP_TRY(
        meet(members, asked, answer_of(plans, sizes_agree(members, asked, own, told.value()))));
    if (first_that_told(members, answer::no)) {
        return prepared{outcome::unreachable, {}};
    }
    if (first_that_told(members, answer::not_this_call)) {
        return prepared{};
    }
    return prepared{outcome::done, plans.take()};
}

result<direct_collectives::outcome> direct_collectives::try_out(group::group &members,
                                                                const request &asked,
                                                                std::span<const buffers> own) {
    auto made = prepare(members, asked, own, 0);
    DIOMP_TRY(made);
    return made.value().what;
}

result<direct_collectives::outcome> direct_collectives::run(group::group &members,
                                                            const request &asked,
                                                            std::span<const buffers> own,
                                                            std::size_t from_bytes) {
    auto made = prepare(members, asked, own, from_bytes);
    DIOMP_TRY(made);
    if (made.value().what != outcome::done) {
        return made.value().what;
    }
    const std::vector<own_plan> &plans = made.value().plans;
    for (std::size_t phase = 0; phase < plans.front().phases.size(); ++phase) {
        DIOMP_TRY(run_phase(members, asked, plans, phase));
    }
    log(log_level::debug, "{}{} on {} endpoints: from device to device", sync::name_of(asked.what),
        collective::has_block_lists(asked.what) ? "" : fmt::format(" of {} elements", asked.amount),
        members.count());
    return outcome::done;
}

} // namespace diomp::runtime
