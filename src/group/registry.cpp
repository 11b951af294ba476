// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/registry.h"

#include <climits>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace diomp::group {
namespace {

using sync::call_signature;
using sync::operation;

/// The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators): every bit of the input changes half of the output.
std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

std::uint64_t hash_list(std::span<const world_rank> members) {
    std::uint64_t hash = mix(members.size());
    for (world_rank const each : members) {
        hash = mix(hash ^ static_cast<std::uint64_t>(each.value()));
    }
    return hash;
}

std::string list_ranks(std::span<const world_rank> members) {
    constexpr std::size_t most = 16; // names enough to recognise the call
    std::vector<int> numbers;
    for (world_rank const each : members.first(std::min(members.size(), most))) {
        numbers.push_back(each.value());
    }
    return fmt::format("{}{}", fmt::join(numbers, ", "), members.size() > most ? ", ..." : "");
}

bool is_communication_failure(const error &failure) {
    return failure.code() == OMPX_ERR_TIMEOUT || failure.code() == OMPX_ERR_PEER;
}

} // namespace

group_registry::group_registry(conduit::engine &engine, workspace &space, world_rank self,
                               int num_ranks)
    : engine_(engine), space_(space), self_(self), num_ranks_(num_ranks),
      own_slot_(engine.transport().direct_base(self)),
      offer_handler_(engine.add_handler([this](const conduit::message &incoming) {
          offer arrived;
          std::memcpy(&arrived, incoming.payload.data(), sizeof(arrived));
          std::lock_guard const guard(mutex_);
          offers_[arrived.set_hash][incoming.source].push_back(arrived);
      })),
      letters_(engine, space, own_slot_) {}

group_registry::~group_registry() = default;

status group_registry::create_world(node_map nodes) {
    nodes_ = std::move(nodes);
    group_parts parts;
    std::optional<std::uint64_t> const offset = space_.allocate(sizeof(member_block));
    if (!offset) {
        return error(OMPX_ERR_NOMEM, "no space for the world group's block");
    }
    for (int rank = 0; rank < num_ranks_; ++rank) {
        parts.members.emplace_back(rank);
        parts.offsets.push_back(*offset);
    }
    parts.self = self_.index();
    world_ = std::make_unique<group>(engine_, space_, letters_, nodes_, std::move(parts));
    return {};
}

// 0 is the world's.
std::uint64_t group_registry::next_id() {
    return (self_.index() + 1) << 40 | num_ids_.fetch_add(1, std::memory_order_relaxed);
}

result<group *> group_registry::find(ompx_group_t handle) {
    if (handle == ompx_group_world) {
        return world_.get();
    }
    if (group *const found = table_.find(handle)) {
        return found;
    }
    if (handle == OMPX_GROUP_NONE) {
        return error(OMPX_ERR_ARG, "the group is OMPX_GROUP_NONE",
                     "a rank outside a group must not call its functions");
    }
    return error(OMPX_ERR_ARG, fmt::format("{} is no group", static_cast<const void *>(handle)),
                 "the group was never created, or has been freed");
}

status group_registry::check_list(std::span<const int> ranks, const char *function) const {
    if (ranks.empty()) {
        return error(OMPX_ERR_ARG, fmt::format("{}: a group needs at least one member", function),
                     "list the caller's rank at least");
    }
    std::vector<bool> seen(static_cast<std::size_t>(num_ranks_));
    for (int const rank : ranks) {
        if (rank < 0 || rank >= num_ranks_) {
            return error(OMPX_ERR_RANK,
                         fmt::format("{}: there is no rank {}, the world has {}", function, rank,
                                     num_ranks_),
                         fmt::format("pass ranks from 0 to {}", num_ranks_ - 1));
        }
        if (seen[static_cast<std::size_t>(rank)]) {
            return error(OMPX_ERR_ARG, fmt::format("{}: rank {} is listed twice", function, rank),
                         "list each rank once");
        }
        seen[static_cast<std::size_t>(rank)] = true;
    }
    if (!seen[self_.index()]) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("{}: rank {} calls but is not in the list", function, self_.value()),
            "only members may call");
    }
    return {};
}

result<ompx_group_t> group_registry::create(std::span<const int> ranks) {
    DIOMP_TRY(check_list(ranks, "ompx_group_create"));
    std::vector<world_rank> members;
    for (int const rank : ranks) {
        members.emplace_back(rank);
    }
    std::string const call = fmt::format("ompx_group_create(ranks {})", list_ranks(members));
    return create_from(std::move(members), call);
}

result<ompx_group_t> group_registry::create_from(std::vector<world_rank> members,
                                                 const std::string &call) {
    offer const own = make_offer(members);
    auto offers = exchange(members, own, call);
    if (!offers) {
        return offers.take_failure();
    }
    group_parts parts;
    for (std::size_t member = 0; member < members.size(); ++member) {
        const offer &each = offers.value()[member];
        bool const same_order = each.order_hash == own.order_hash;
        if (each.offset_plus_one == 0 || !same_order) {
            if (own.offset_plus_one != 0) {
                space_.release(own.offset_plus_one - 1);
            }
            return same_order ? error(OMPX_ERR_NOMEM,
                                      fmt::format("rank {} has no space left for another group",
                                                  members[member].value()),
                                      "free groups that are not needed any more")
                              : error(OMPX_ERR_MISMATCH,
                                      fmt::format("rank {} lists the members in another order",
                                                  members[member].value()),
                                      "all members must pass the same list");
        }
        if (members[member] == self_) {
            parts.self = member;
        }
        parts.offsets.push_back(each.offset_plus_one - 1);
    }
    parts.members = std::move(members);
    parts.id = offers.value().front().id;
    return assemble(std::move(parts));
}

group_registry::offer group_registry::make_offer(std::span<const world_rank> members) {
    std::vector<world_rank> sorted(members.begin(), members.end());
    std::ranges::sort(sorted);
    offer own{hash_list(sorted), hash_list(members), 0, 0};
    {
        std::lock_guard const guard(mutex_);
        if (auto const left = unfinished_.find(own.set_hash); left != unfinished_.end()) {
            own.offset_plus_one = left->second.offset_plus_one;
            own.order_hash = left->second.order_hash;
            own.id = left->second.id;
            return own;
        }
    }
    own.id = next_id();
    if (auto const offset = allocate_block(space_, own_slot_)) {
        own.offset_plus_one = *offset + 1;
    }
    for (world_rank const each : members) {
        if (each != self_) {
            engine_.send(each, offer_handler_, own);
        }
    }
    return own;
}

bool group_registry::all_offers_in(std::span<const world_rank> members, std::uint64_t set_hash) {
    std::lock_guard const guard(mutex_);
    auto const found = offers_.find(set_hash);
    // Every sender in the map has at least one offer waiting.
    return found != offers_.end() ? found->second.size() + 1 >= members.size()
                                  : members.size() == 1;
}

std::string group_registry::describe_missing(std::span<const world_rank> members,
                                             std::uint64_t set_hash, const std::string &call) {
    std::lock_guard const guard(mutex_);
    std::vector<world_rank> missing;
    auto const &arrived = offers_[set_hash];
    std::ranges::copy_if(members, std::back_inserter(missing),
                         [&](world_rank each) { return each != self_ && !arrived.contains(each); });
    return fmt::format("waiting for {} {} in {}", missing.size() == 1 ? "rank" : "ranks",
                       list_ranks(missing), call);
}

result<std::vector<group_registry::offer>>
group_registry::exchange(std::span<const world_rank> members, const offer &own,
                         const std::string &call) {
    status waited =
        engine_.wait_for_message([&] { return all_offers_in(members, own.set_hash); },
                                 [&] { return describe_missing(members, own.set_hash, call); });
    std::lock_guard const guard(mutex_);
    if (!waited) {
        unfinished_[own.set_hash] = {own.offset_plus_one, own.order_hash, own.id};
        return waited.take_failure();
    }
    unfinished_.erase(own.set_hash);
    std::vector<offer> offers;
    auto &arrived = offers_[own.set_hash];
    for (world_rank const each : members) {
        if (each == self_) {
            offers.push_back(own);
            continue;
        }
        auto &queue = arrived[each];
        offers.push_back(queue.front());
        queue.pop_front();
        if (queue.empty()) {
            arrived.erase(each);
        }
    }
    if (arrived.empty()) {
        offers_.erase(own.set_hash);
    }
    return offers;
}

result<ompx_group_t> group_registry::assemble(group_parts parts) {
    auto const handle =
        table_.insert(std::make_unique<group>(engine_, space_, letters_, nodes_, std::move(parts)));
    if (!handle) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("this rank has {} groups already", handle_table::max_groups),
                     "free groups that are not needed any more");
    }
    return *handle;
}

result<ompx_group_t> group_registry::split(ompx_group_t parent, int color, int key) {
    auto found = find(parent);
    if (!found) {
        return found.take_failure();
    }
    group &whole = *found.value();
    std::optional<std::uint64_t> const offset =
        color < 0 ? std::nullopt : allocate_block(space_, own_slot_);
    auto const turn = whole.enter();
    status met = whole.meet({.what = operation::group_split},
                            {static_cast<std::uint64_t>(std::int64_t{color}),
                             static_cast<std::uint64_t>(std::int64_t{key}),
                             offset ? *offset + 1 : 0, next_id()});
    if (!met) {
        // After a timeout late members may still take up the offer: then the block must stay.
        if (offset && !is_communication_failure(met.failure())) {
            space_.release(*offset);
        }
        return met.take_failure();
    }
    if (color < 0) {
        return OMPX_GROUP_NONE;
    }
    std::vector<std::size_t> chosen;
    for (std::size_t member = 0; member < whole.size(); ++member) {
        if (static_cast<int>(whole.payload_of(member)[0]) == color) {
            chosen.push_back(member);
        }
    }
    std::ranges::sort(chosen, {}, [&whole](std::size_t member) {
        return std::pair(static_cast<int>(whole.payload_of(member)[1]), member);
    });
    group_parts parts;
    for (std::size_t const member : chosen) {
        world_rank const rank = whole.members()[member];
        std::uint64_t const told = whole.payload_of(member)[2];
        if (told == 0) {
            if (offset) {
                space_.release(*offset);
            }
            return error(OMPX_ERR_NOMEM,
                         fmt::format("rank {} has no space left for another group", rank.value()),
                         "free groups that are not needed any more");
        }
        if (rank == self_) {
            parts.self = parts.members.size();
        }
        if (parts.members.empty()) {
            parts.id = whole.payload_of(member)[3];
        }
        parts.members.push_back(rank);
        parts.offsets.push_back(told - 1);
    }
    return assemble(std::move(parts));
}

status group_registry::free(ompx_group_t handle) {
    if (handle == ompx_group_world) {
        return error(OMPX_ERR_ARG, "the world cannot be freed",
                     "free the groups that the program made");
    }
    auto found = find(handle);
    if (!found) {
        return found.take_failure();
    }
    group &ending = *found.value();
    {
        auto const turn = ending.enter();
        DIOMP_TRY(ending.depart({.what = operation::group_free}));
    }
    table_.remove(handle);
    return {};
}

} // namespace diomp::group
