// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/registry.h"

#include <climits>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

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

/// Hash of the list, which must be equal on all members.
std::uint64_t hash_endpoints(const parsed_endpoints &description) {
    std::uint64_t hash = hash_list(description.members);
    for (const endpoint &each : description.endpoints) {
        hash =
            mix(hash ^ std::uint64_t{each.member} << 32 ^ static_cast<std::uint32_t>(each.device));
    }
    return hash;
}

std::string list_ranks(std::span<const world_rank> members) {
    constexpr std::size_t max_listed = 16; // enough to identify the call in a message
    std::vector<int> numbers;
    for (world_rank const each : members.first(std::min(members.size(), max_listed))) {
        numbers.push_back(each.value());
    }
    return fmt::format("{}{}", fmt::join(numbers, ", "),
                       members.size() > max_listed ? ", ..." : "");
}

} // namespace

group_registry::group_registry(messaging::engine &engine, workspace &space, world_rank self,
                               int num_ranks)
    : engine_(engine), space_(space), self_(self), num_ranks_(num_ranks),
      own_slot_(engine.transport().direct_base(self)),
      offer_handler_(engine.add_handler([this](const transport::message &incoming) {
          offer arrived;
          std::memcpy(&arrived, incoming.payload.data(), sizeof(arrived));
          std::lock_guard const guard(mutex_);
          offers_[arrived.set_hash][incoming.source].push_back(arrived);
      })),
      messages_(engine, space, own_slot_) {}

group_registry::~group_registry() = default;

status group_registry::create_world(node_map nodes) {
    nodes_ = std::move(nodes);
    group_description description;
    std::optional<std::uint64_t> const offset = space_.allocate(sizeof(member_block));
    if (!offset) {
        return error(OMPX_ERR_NOMEM, "no space for the world group's block");
    }
    for (int rank = 0; rank < num_ranks_; ++rank) {
        description.members.emplace_back(rank);
        description.offsets.push_back(*offset);
    }
    description.self = self_.index();
    world_ = make(std::move(description));
    return {};
}

// Id 0 is the world's.
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
    return error(OMPX_ERR_ARG, fmt::format("{} is not a group", static_cast<const void *>(handle)),
                 "the group was never created, or has been freed");
}

// `function` is the public function's name for errors. Ranks without a device have device -1.
status group_registry::check_list(std::span<const ompx_endpoint_t> list,
                                  const char *function) const {
    std::set<std::pair<int, int>> seen;
    bool has_self = false;
    for (const ompx_endpoint_t &each : list) {
        if (each.rank < 0 || each.rank >= num_ranks_) {
            return error(OMPX_ERR_RANK,
                         fmt::format("{}: there is no rank {}, the world has {}", function,
                                     each.rank, num_ranks_),
                         fmt::format("pass ranks from 0 to {}", num_ranks_ - 1));
        }
        if (each.device < -1) {
            return error(OMPX_ERR_ARG,
                         fmt::format("{}: {} is not a device number", function, each.device),
                         "pass OpenMP device numbers, or -1 for the host");
        }
        if (!seen.emplace(each.rank, each.device).second) {
            return error(
                OMPX_ERR_ARG,
                fmt::format("{}: rank {}{} is listed twice", function, each.rank,
                            each.device < 0 ? "" : fmt::format(", device {}", each.device)),
                "list each member once");
        }
        has_self = has_self || each.rank == self_.value();
    }
    if (!has_self) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("{}: rank {} calls but is not in the list", function, self_.value()),
            "only members may call");
    }
    return {};
}

result<ompx_group_t> group_registry::create(std::span<const int> ranks) {
    std::vector<ompx_endpoint_t> list;
    for (int const rank : ranks) {
        list.push_back({rank, -1});
    }
    DIOMP_TRY(check_list(list, "ompx_group_create"));
    parsed_endpoints description = split_endpoint_list(list);
    description.endpoints.clear();
    std::string const call =
        fmt::format("ompx_group_create(ranks {})", list_ranks(description.members));
    return create_from(std::move(description), call);
}

result<ompx_group_t> group_registry::create_endpoints(std::span<const ompx_endpoint_t> list) {
    DIOMP_TRY(check_list(list, "ompx_group_create_endpoints"));
    parsed_endpoints description = split_endpoint_list(list);
    std::string const call = fmt::format("ompx_group_create_endpoints({} endpoints of ranks {})",
                                         list.size(), list_ranks(description.members));
    return create_from(std::move(description), call);
}

result<ompx_group_t> group_registry::create_from(parsed_endpoints wanted, const std::string &call) {
    offer const own = make_offer(wanted);
    auto offers = exchange(wanted.members, own, call);
    if (!offers) {
        return offers.take_failure();
    }
    group_description description;
    for (std::size_t member = 0; member < wanted.members.size(); ++member) {
        const offer &each = offers.value()[member];
        bool const same_list = each.list_hash == own.list_hash;
        if (each.offset_plus_one == 0 || !same_list) {
            if (own.offset_plus_one != 0) {
                space_.release(own.offset_plus_one - 1);
            }
            return same_list
                       ? no_space_at(wanted.members[member])
                       : error(OMPX_ERR_MISMATCH,
                               fmt::format("rank {} lists the members in another order, or other "
                                           "devices",
                                           wanted.members[member].value()),
                               "all members must pass the same list");
        }
        if (wanted.members[member] == self_) {
            description.self = member;
        }
        description.offsets.push_back(each.offset_plus_one - 1);
    }
    description.members = std::move(wanted.members);
    description.endpoints = list_of(std::move(wanted.endpoints), description.members.size());
    description.id = offers.value().front().id;
    return assemble(std::move(description));
}

endpoint_list group_registry::list_of(std::vector<endpoint> endpoints, std::size_t num_members) {
    return endpoints.empty() ? endpoint_list() : endpoint_list(std::move(endpoints), num_members);
}

error group_registry::no_space_at(world_rank rank) {
    return {OMPX_ERR_NOMEM,
            fmt::format("rank {} has no space left for another group", rank.value()),
            "free groups that are not needed any more"};
}

group_registry::offer group_registry::make_offer(const parsed_endpoints &wanted) {
    std::vector<world_rank> sorted = wanted.members;
    std::ranges::sort(sorted);
    offer own{hash_list(sorted), hash_endpoints(wanted), 0, 0};
    {
        std::lock_guard const guard(mutex_);
        if (auto const left = unfinished_.find(own.set_hash); left != unfinished_.end()) {
            own.offset_plus_one = left->second.offset_plus_one;
            own.list_hash = left->second.list_hash;
            own.id = left->second.id;
            return own;
        }
    }
    own.id = next_id();
    if (auto const offset = allocate_block(space_, own_slot_)) {
        own.offset_plus_one = *offset + 1;
    }
    for (world_rank const each : wanted.members) {
        if (each != self_) {
            engine_.send(each, offer_handler_, own);
        }
    }
    return own;
}

bool group_registry::all_offers_in(std::span<const world_rank> members, std::uint64_t set_hash) {
    std::lock_guard const guard(mutex_);
    auto const found = offers_.find(set_hash);
    // Every sender in the map has at least one offer.
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
        unfinished_[own.set_hash] = {own.offset_plus_one, own.list_hash, own.id};
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

std::unique_ptr<group> group_registry::make(group_description description) {
    return std::make_unique<group>(engine_, space_, messages_, nodes_, std::move(description));
}

result<ompx_group_t> group_registry::assemble(group_description description) {
    auto const handle = table_.insert(make(std::move(description)));
    if (!handle) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("this rank has {} groups already", handle_table::max_groups),
                     "free groups that are not needed any more");
    }
    return *handle;
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
        auto const call_lock = ending.lock_calls();
        DIOMP_TRY(ending.depart({.what = operation::group_free}));
    }
    table_.remove(handle);
    return {};
}

} // namespace diomp::group
