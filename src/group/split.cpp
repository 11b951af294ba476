// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Splitting: in a barrier with payload every member publishes its choice and its block, one barrier
// for each of its endpoints. Then each member can compute every new group.
#include "group/group.h"
#include "group/internal/group_factory.h"
#include "group/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace diomp::group {
namespace {

using sync::operation;

bool is_communication_failure(const error &failure) {
    return failure.code() == OMPX_ERR_TIMEOUT || failure.code() == OMPX_ERR_PEER;
}

using split_choice = group_registry::split_choice;
using own_blocks = std::map<int, std::uint64_t>; ///< by color

/// What a member sends for one of its endpoints.
struct member_choice {
    split_choice choice;
    std::uint64_t offset_plus_one = 0;
    std::uint64_t id = 0;
    endpoint owner;
};

result<std::vector<member_choice>> exchange_choices(group_factory &factory, group &whole,
                                                    sync::operation what,
                                                    std::span<const split_choice> own,
                                                    const own_blocks &blocks) {
    const endpoint_list &endpoints = whole.endpoints();
    std::vector<member_choice> choices(whole.count());
    std::size_t const rounds = endpoints.empty() ? 1 : endpoints.max_per_member();
    for (std::size_t round = 0; round < rounds; ++round) {
        split_choice const mine = round < own.size() ? own[round] : split_choice{-1, 0};
        auto const block = blocks.find(mine.color);
        DIOMP_TRY(whole.arrive_and_wait(
            {.what = what}, {static_cast<std::uint64_t>(std::int64_t{mine.color}),
                             static_cast<std::uint64_t>(std::int64_t{mine.key}),
                             block != blocks.end() ? block->second + 1 : 0, factory.next_id()}));
        for (std::uint32_t member = 0; member < whole.size(); ++member) {
            if (!endpoints.empty() && round >= endpoints.of(member).size()) {
                continue;
            }
            const sync::round_payload &payload = whole.payload_of(member);
            std::size_t const index = endpoints.empty() ? member : endpoints.of(member)[round];
            choices[index] = {{static_cast<int>(payload[0]), static_cast<int>(payload[1])},
                              payload[2],
                              payload[3],
                              endpoints.empty() ? endpoint{member, 0} : endpoints[index]};
        }
    }
    whole.forget_payloads();
    return choices;
}

result<group_description> description_of_color(const group &whole, int color,
                                               const std::vector<member_choice> &choices) {
    std::vector<std::size_t> chosen;
    for (std::size_t index = 0; index < choices.size(); ++index) {
        if (choices[index].choice.color == color) {
            chosen.push_back(index);
        }
    }
    std::ranges::sort(chosen, {}, [&choices](std::size_t index) {
        return std::pair(choices[index].choice.key, index);
    });
    group_description parts;
    std::vector<endpoint> endpoints;
    std::map<world_rank, std::uint32_t> index_of_rank;
    for (std::size_t const index : chosen) {
        const member_choice &each = choices[index];
        world_rank const rank = whole.members()[each.owner.member];
        if (each.offset_plus_one == 0) {
            return no_space_at(rank);
        }
        auto const [entry, is_new] =
            index_of_rank.try_emplace(rank, static_cast<std::uint32_t>(parts.members.size()));
        if (is_new) {
            parts.members.push_back(rank);
            parts.offsets.push_back(each.offset_plus_one - 1);
        }
        if (rank == whole.members()[whole.self().index()]) {
            parts.self = entry->second;
        }
        if (!whole.endpoints().empty()) {
            endpoints.push_back({entry->second, each.owner.device});
        }
    }
    parts.id = choices[chosen.front()].id;
    if (!endpoints.empty()) {
        parts.endpoints = endpoint_list(std::move(endpoints), parts.members.size());
    }
    return parts;
}

/// The caller's new groups by color. The caller holds the call lock.
result<std::map<int, group_description>> describe_new_groups(group_factory &factory, group &whole,
                                                             sync::operation what,
                                                             std::span<const split_choice> own) {
    own_blocks blocks;
    for (const split_choice &each : own) {
        if (each.color >= 0 && !blocks.contains(each.color)) {
            if (auto const offset = factory.allocate_block()) {
                blocks[each.color] = *offset;
            }
        }
    }
    auto const release = [&] {
        for (auto const &[color, offset] : blocks) {
            factory.space().release(offset);
        }
    };
    auto choices = exchange_choices(factory, whole, what, own, blocks);
    if (!choices) {
        // After a timeout late members may still use the blocks, so they are not freed.
        if (!is_communication_failure(choices.failure())) {
            release();
        }
        return choices.take_failure();
    }
    std::map<int, group_description> parts;
    for (const split_choice &each : own) {
        if (each.color < 0 || parts.contains(each.color)) {
            continue;
        }
        auto part = description_of_color(whole, each.color, choices.value());
        if (!part) {
            release();
            return part.take_failure();
        }
        parts.emplace(each.color, part.take());
    }
    return parts;
}

} // namespace

result<ompx_group_t> group_registry::split(sync::operation what, ompx_group_t parent, int color,
                                           int key) {
    auto found = find(parent);
    DIOMP_TRY(found);
    std::size_t const num_own = found.value()->num_own();
    std::vector<ompx_group_t> results(num_own);
    DIOMP_TRY(split(what, parent, std::vector(num_own, split_choice{color, key}), results));
    return results.front();
}

status group_registry::split(sync::operation what, ompx_group_t parent,
                             std::span<const split_choice> own, std::span<ompx_group_t> results) {
    auto found = find(parent);
    DIOMP_TRY(found);
    auto const call_lock = found.value()->lock_calls();
    several_rounds const rounds(*found.value());
    auto parts = describe_new_groups(*factory_, *found.value(), what, own);
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

// One node may lack space while others have it, so a final agreement decides for all.
status group_registry::make_subgroups(group &whole) {
    node_layout const &layout = whole.layout();
    several_rounds const rounds(whole);
    std::size_t const num_own = whole.num_own();
    node_subgroups made;
    auto const node = static_cast<int>(layout.own_node);
    auto intra_node = describe_new_groups(*factory_, whole, operation::group_split,
                                          std::vector(num_own, split_choice{node, 0}));
    if (intra_node) {
        made.intra_node = factory_->make(std::move(intra_node.value().at(node)));
    }
    std::vector<split_choice> leads(num_own, {-1, 0});
    leads.front().color = whole.layout().is_leader() ? 0 : -1;
    auto inter_node = describe_new_groups(*factory_, whole, operation::group_split, leads);
    if (inter_node && !inter_node.value().empty()) {
        made.inter_node = factory_->make(std::move(inter_node.value().at(0)));
    }
    auto agreed =
        whole.agree({.what = operation::group_split},
                    intra_node && inter_node ? std::nullopt : std::optional<std::uint64_t>(0));
    DIOMP_TRY(agreed);
    if (agreed.value()) {
        return no_space_at(whole.members()[agreed.value()->member]);
    }
    whole.set_subgroups(std::move(made));
    return {};
}

} // namespace diomp::group
