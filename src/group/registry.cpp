// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/registry.h"

#include "base/handle_table.h"
#include "group/group.h"
#include "group/internal/group_factory.h"
#include "group/internal/offer_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace diomp::group {

error no_space_at(world_rank rank) {
    return {OMPX_ERR_NOMEM,
            fmt::format("rank {} has no space left for another group", rank.value()),
            "free groups that are not needed any more"};
}

group_registry::group_registry(messaging::engine &engine, workspace &space, world_rank self,
                               int num_ranks)
    : num_ranks_(num_ranks), offers_(std::make_unique<offer_exchange>(engine, self)),
      factory_(std::make_unique<group_factory>(engine, space, self)),
      table_(std::make_unique<table>()) {}

group_registry::~group_registry() = default;

std::size_t group_registry::num_groups() const { return table_->size(); }

status group_registry::create_world(const node_map &nodes, std::span<const world_rank> ranks) {
    factory_->set_nodes(nodes, ranks);
    group_description description;
    std::optional<std::uint64_t> const offset = factory_->space().allocate(sizeof(member_block));
    if (!offset) {
        return error(OMPX_ERR_NOMEM, "no space for the world group's block");
    }
    description.shared_members = ranks;
    for (int rank = 0; ranks.empty() && rank < num_ranks_; ++rank) {
        description.members.emplace_back(rank);
    }
    description.offsets.push_back(*offset);
    description.self = factory_->self().index();
    world_ = factory_->make(std::move(description));
    return {};
}

result<group *> group_registry::find(ompx_group_t handle) {
    if (handle == ompx_group_world) {
        return world_.get();
    }
    if (find_of_host_ && handle != OMPX_GROUP_NONE) {
        auto own = find_of_host_(handle);
        DIOMP_TRY(own);
        return find_own(own.value() == OMPX_GROUP_NONE ? handle : own.value());
    }
    return find_own(handle);
}

void group_registry::find_groups_of_host(host_group_finder find) {
    constexpr std::uint32_t first_generation = std::uint32_t{1} << 31;
    table_ = std::make_unique<table>(first_generation);
    find_of_host_ = std::move(find);
}

result<group *> group_registry::find_own(ompx_group_t handle) {
    if (group *const found = table_->find(handle)) {
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
        has_self = has_self || each.rank == factory_->self().value();
    }
    if (!has_self) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{}: rank {} calls but is not in the list", function,
                                 factory_->self().value()),
                     "only members may call");
    }
    return {};
}

result<ompx_group_t> group_registry::create(std::span<const int> ranks, std::uint64_t key) {
    std::vector<ompx_endpoint_t> list;
    for (int const rank : ranks) {
        list.push_back({rank, -1});
    }
    DIOMP_TRY(check_list(list, "ompx_group_create"));
    parsed_endpoints description = split_endpoint_list(list);
    description.endpoints.clear();
    description.key = key;
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
    auto exchanged = offers_->run(wanted, call, *factory_);
    DIOMP_TRY(exchanged);
    const std::vector<block_offer> &offers = exchanged.value();
    group_description description;
    description.self = static_cast<std::size_t>(
        std::ranges::find(wanted.members, factory_->self()) - wanted.members.begin());
    const block_offer &own = offers[description.self];
    for (std::size_t member = 0; member < wanted.members.size(); ++member) {
        const block_offer &each = offers[member];
        bool const same_list = each.list_hash == own.list_hash;
        if (each.offset_plus_one == 0 || !same_list) {
            if (own.offset_plus_one != 0) {
                factory_->space().release(own.offset_plus_one - 1);
            }
            return same_list
                       ? no_space_at(wanted.members[member])
                       : error(OMPX_ERR_MISMATCH,
                               fmt::format("rank {} lists the members in another order, or other "
                                           "devices",
                                           wanted.members[member].value()),
                               "all members must pass the same list");
        }
        description.offsets.push_back(each.offset_plus_one - 1);
    }
    description.members = std::move(wanted.members);
    if (!wanted.endpoints.empty()) {
        description.endpoints =
            endpoint_list(std::move(wanted.endpoints), description.members.size());
    }
    description.id = offers.front().id;
    return assemble(std::move(description));
}

result<ompx_group_t> group_registry::assemble(group_description description) {
    auto const handle = table_->insert(factory_->make(std::move(description)));
    if (!handle) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("this rank has {} groups already", table::max_objects),
                     "free groups that are not needed any more");
    }
    return *handle;
}

status group_registry::free(ompx_group_t handle) {
    if (handle == ompx_group_world) {
        return error(OMPX_ERR_ARG, "the world cannot be freed",
                     "free the groups that the program made");
    }
    if (find_of_host_) {
        auto own = find_of_host_(handle);
        DIOMP_TRY(own);
        if (own.value() != OMPX_GROUP_NONE) {
            return error(OMPX_ERR_ARG, "the group is the host's, and a region cannot free it",
                         "free it on the host");
        }
    }
    auto found = find(handle);
    if (!found) {
        return found.take_failure();
    }
    group &ending = *found.value();
    {
        auto const call_lock = ending.lock_calls();
        DIOMP_TRY(ending.depart({.what = sync::operation::group_free}));
    }
    if (on_free_) {
        on_free_(ending.id());
    }
    table_->remove(handle);
    return {};
}

} // namespace diomp::group
