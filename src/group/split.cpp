// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Splitting: every member tells its choice and its block in a meeting, one after the other for each
// of its endpoints. Then everybody knows every part.
#include "group/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::group {
namespace {

using sync::operation;

bool is_communication_failure(const error &failure) {
    return failure.code() == OMPX_ERR_TIMEOUT || failure.code() == OMPX_ERR_PEER;
}

} // namespace

result<std::vector<group_registry::told_choice>>
group_registry::tell_choices(group &whole, std::span<const choice> own, const own_blocks &blocks) {
    const endpoint_list &endpoints = whole.endpoints();
    std::vector<told_choice> told(whole.count());
    std::size_t const rounds = endpoints.empty() ? 1 : endpoints.most_per_member();
    for (std::size_t round = 0; round < rounds; ++round) {
        choice const mine = round < own.size() ? own[round] : choice{-1, 0};
        auto const block = blocks.find(mine.color);
        DIOMP_TRY(whole.meet({.what = operation::group_split},
                             {static_cast<std::uint64_t>(std::int64_t{mine.color}),
                              static_cast<std::uint64_t>(std::int64_t{mine.key}),
                              block != blocks.end() ? block->second + 1 : 0, next_id()}));
        for (std::uint32_t member = 0; member < whole.size(); ++member) {
            if (!endpoints.empty() && round >= endpoints.of(member).size()) {
                continue;
            }
            const sync::meeting_payload &said = whole.payload_of(member);
            std::size_t const index = endpoints.empty() ? member : endpoints.of(member)[round];
            told[index] = {{static_cast<int>(said[0]), static_cast<int>(said[1])},
                           said[2],
                           said[3],
                           endpoints.empty() ? endpoint{member, 0} : endpoints[index]};
        }
    }
    return told;
}

result<group_parts> group_registry::part_of_color(const group &whole, int color,
                                                  const std::vector<told_choice> &told) const {
    std::vector<std::size_t> chosen;
    for (std::size_t index = 0; index < told.size(); ++index) {
        if (told[index].wants.color == color) {
            chosen.push_back(index);
        }
    }
    std::ranges::sort(
        chosen, {}, [&told](std::size_t index) { return std::pair(told[index].wants.key, index); });
    group_parts parts;
    std::vector<endpoint> endpoints;
    std::map<world_rank, std::uint32_t> places;
    for (std::size_t const index : chosen) {
        const told_choice &each = told[index];
        world_rank const rank = whole.members()[each.who.member];
        if (each.offset_plus_one == 0) {
            return no_space_at(rank);
        }
        auto const [place, is_new] =
            places.try_emplace(rank, static_cast<std::uint32_t>(parts.members.size()));
        if (is_new) {
            parts.members.push_back(rank);
            parts.offsets.push_back(each.offset_plus_one - 1);
        }
        if (rank == self_) {
            parts.self = place->second;
        }
        if (!whole.endpoints().empty()) {
            endpoints.push_back({place->second, each.who.device});
        }
    }
    parts.id = told[chosen.front()].id;
    parts.endpoints = list_of(std::move(endpoints), parts.members.size());
    return parts;
}

result<ompx_group_t> group_registry::split(ompx_group_t parent, int color, int key) {
    auto found = find(parent);
    DIOMP_TRY(found);
    std::size_t const num_own = found.value()->num_own();
    std::vector<ompx_group_t> results(num_own);
    DIOMP_TRY(split(parent, std::vector(num_own, choice{color, key}), results));
    return results.front();
}

result<std::map<int, group_parts>> group_registry::split_parts(group &whole,
                                                               std::span<const choice> own) {
    own_blocks blocks;
    for (const choice &each : own) {
        if (each.color >= 0 && !blocks.contains(each.color)) {
            if (auto const offset = allocate_block(space_, own_slot_)) {
                blocks[each.color] = *offset;
            }
        }
    }
    auto const release = [&] {
        for (auto const &[color, offset] : blocks) {
            space_.release(offset);
        }
    };
    auto told = tell_choices(whole, own, blocks);
    if (!told) {
        // After a timeout late members may still take up the offer: then the blocks must stay.
        if (!is_communication_failure(told.failure())) {
            release();
        }
        return told.take_failure();
    }
    std::map<int, group_parts> parts;
    for (const choice &each : own) {
        if (each.color < 0 || parts.contains(each.color)) {
            continue;
        }
        auto part = part_of_color(whole, each.color, told.value());
        if (!part) {
            release();
            return part.take_failure();
        }
        parts.emplace(each.color, part.take());
    }
    return parts;
}

status group_registry::split(ompx_group_t parent, std::span<const choice> own,
                             std::span<ompx_group_t> results) {
    auto found = find(parent);
    DIOMP_TRY(found);
    auto const turn = found.value()->enter();
    auto parts = split_parts(*found.value(), own);
    DIOMP_TRY(parts);
    std::map<int, ompx_group_t> made;
    for (auto &[color, part] : parts.value()) {
        auto handle = assemble(std::move(part));
        DIOMP_TRY(handle);
        made[color] = handle.value();
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        results[i] = own[i].color < 0 ? OMPX_GROUP_NONE : made[own[i].color];
    }
    return {};
}

// A node's space may be full while others have theirs, so all agree in the end.
status group_registry::divide(group &whole) {
    node_layout const &layout = whole.across()->layout();
    std::size_t const num_own = whole.num_own();
    node_parts made;
    auto const node = static_cast<int>(layout.own_node);
    auto inside = split_parts(whole, std::vector(num_own, choice{node, 0}));
    if (inside) {
        made.inside = make(std::move(inside.value().at(node)));
    }
    std::vector<choice> leads(num_own, {-1, 0});
    leads.front().color = whole.across()->is_leader() ? 0 : -1;
    auto between = split_parts(whole, leads);
    if (between && !between.value().empty()) {
        made.between = make(std::move(between.value().at(0)));
    }
    auto agreed = whole.agree({.what = operation::group_split},
                              inside && between ? std::nullopt : std::optional<std::uint64_t>(0));
    DIOMP_TRY(agreed);
    if (agreed.value()) {
        return no_space_at(whole.members()[agreed.value()->member]);
    }
    whole.keep(std::move(made));
    return {};
}

} // namespace diomp::group
