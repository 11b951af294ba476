// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "diomp/group.h"

#include "api/internal/state.h"
#include "coll/collective.h"
#include "device_coll/device_collectives.h"
#include "diomp/sync.h"
#include "group/group.h"
#include "group/registry.h"
#include "rma/rma.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

using namespace diomp;
using sync::operation;

namespace {

std::string describe(ompx_group_t group) {
    return group == nullptr ? std::string("group=world") : fmt::format("group={}", fmt::ptr(group));
}

/// Returns a number of a group, or a negative status.
template <typename Get>
int query(const char *function, ompx_group_t group, Get &&get) {
    int number = 0;
    int const outcome = api::call(
        function, DIOMP_SITE, [&] { return describe(group); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto found = running.collectives().groups().find(group);
            DIOMP_TRY(found);
            return get(*found.value(), number);
        });
    return outcome < 0 ? outcome : number;
}

status check_members(const void *list, const char *name, int size) {
    if (size < 1) {
        return error(OMPX_ERR_ARG, fmt::format("a group has at least one member, not {}", size),
                     "list the caller's rank at least");
    }
    return api::check_pointer(list, name);
}

/// Checks that `member` is a member's number in the group.
status check_member(const group::group &found, int member) {
    if (member < 0 || static_cast<std::size_t>(member) >= found.count()) {
        return error(OMPX_ERR_RANK,
                     fmt::format("{} is not a member of this group of {}", member, found.count()),
                     fmt::format("pass a number from 0 to {}", found.count() - 1));
    }
    return {};
}

status check_has_endpoints(const group::group &found) {
    if (found.endpoints().empty()) {
        return error(OMPX_ERR_ARG, "the group has ranks as members, not endpoints",
                     "make the group with ompx_group_create_endpoints or "
                     "ompx_group_create_devices");
    }
    return {};
}

world_rank rank_of(const group::group &found, std::size_t member) {
    return found.members()[found.endpoints().empty() ? member : found.endpoints()[member].member];
}

/// The numbers of the members on the caller's node, ascending.
std::vector<int> members_on_own_node(const group::group &found) {
    const group::node_layout &layout = found.layout();
    std::vector<int> numbers;
    for (std::size_t i = 0; i < found.count(); ++i) {
        std::size_t const member = found.endpoints().empty() ? i : found.endpoints()[i].member;
        if (layout.node(member) == layout.own_node) {
            numbers.push_back(static_cast<int>(i));
        }
    }
    return numbers;
}

/// Stands for the device of a member of a group of ranks; no endpoint has this number.
constexpr int no_device = -2;

ompx_endpoint_t endpoint_of(const group::group &found, std::size_t member) {
    return {rank_of(found, member).value(),
            found.endpoints().empty() ? no_device : found.endpoints()[member].device};
}

status translate(const group::group &from, std::span<const int> members, const group::group &to,
                 int *results) {
    bool const by_rank = from.endpoints().empty() || to.endpoints().empty();
    std::map<std::pair<int, int>, int> numbers;
    for (std::size_t member = to.count();
         member-- > 0;) { // backwards, so that a rank's first endpoint wins
        ompx_endpoint_t const each = endpoint_of(to, member);
        numbers[{each.rank, by_rank ? no_device : each.device}] = static_cast<int>(member);
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
        DIOMP_TRY(check_member(from, members[i]));
        ompx_endpoint_t const each = endpoint_of(from, static_cast<std::size_t>(members[i]));
        auto const found = numbers.find({each.rank, by_rank ? no_device : each.device});
        results[i] = found == numbers.end() ? OMPX_NO_MEMBER : found->second;
    }
    return {};
}

/// The devices that the members drive, by member, then in each rank's order. Collective; blocks.
result<std::vector<ompx_endpoint_t>> list_devices(runtime::runtime &running,
                                                  group::group &members) {
    std::vector<int> own = api::driven_devices();
    auto own_count = static_cast<std::int32_t>(own.size());
    std::vector<std::int32_t> counts(members.size());
    coll::collectives &among_ranks = running.collectives().on_host();
    auto const call_lock = members.lock_calls();
    group::several_rounds const rounds(members);
    DIOMP_TRY(among_ranks.run_among_ranks(members, {.what = sync::operation::allgather,
                                                    .dst = counts.data(),
                                                    .src = &own_count,
                                                    .amount = sizeof(own_count)}));
    // Blocks of equal size: those of the rank with most devices.
    auto const longest = static_cast<std::size_t>(std::ranges::max(counts));
    if (longest == 0) {
        return std::vector<ompx_endpoint_t>{};
    }
    own.resize(longest);
    std::vector<int> numbers(longest * members.size());
    DIOMP_TRY(among_ranks.run_among_ranks(members, {.what = sync::operation::allgather,
                                                    .dst = numbers.data(),
                                                    .src = own.data(),
                                                    .amount = longest * sizeof(int)}));
    std::vector<ompx_endpoint_t> list;
    for (std::size_t member = 0; member < members.size(); ++member) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(counts[member]); ++i) {
            list.push_back({members.members()[member].value(), numbers[member * longest + i]});
        }
    }
    return list;
}

/// Makes new groups known to regions on remote devices. Collective over each of them; blocks.
void describe_to_devices(runtime::runtime &running, std::span<const ompx_group_t> made) {
    // Members may have them in different orders.
    std::map<std::uint64_t, std::pair<group::group *, ompx_group_t>> by_id;
    for (ompx_group_t const each : made) {
        if (each != OMPX_GROUP_NONE) {
            group::group *const found = running.collectives().groups().find(each).value();
            by_id[found->id()] = {found, each};
        }
    }
    for (auto const &[id, each] : by_id) {
        running.collectives().on_devices().describe(*each.first, each.second);
    }
}

/// Runs make(registry) -> result<ompx_group_t> and stores the new group in *into.
template <typename Arguments, typename Make>
int make_group(const char *function, const void *site, ompx_group_t *into, Arguments &&arguments,
               Make &&make) {
    return api::call(function, site, arguments,
                     [&](runtime::runtime &running, api::call_stats &) -> status {
                         DIOMP_TRY(api::check_pointer(into, "the result"));
                         auto made = make(running.collectives().groups());
                         DIOMP_TRY(made);
                         *into = made.value();
                         describe_to_devices(running, {into, 1});
                         return {};
                     });
}

} // namespace

extern "C" {

int ompx_barrier(void) noexcept { return ompx_barrier_group(nullptr); }

int ompx_barrier_group(ompx_group_t group) noexcept {
    return api::call(
        "ompx_barrier", DIOMP_SITE, [&] { return describe(group); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = running.collectives().groups().find(group);
            DIOMP_TRY(found);
            stats.group = found.value()->id();
            DIOMP_TRY(running.transfers().fence_before_barrier());
            auto const call_lock = found.value()->lock_calls();
            sync::call_signature call;
            call.what = sync::operation::barrier;
            DIOMP_TRY(found.value()->arrive_and_wait(call));
            return take_late_mismatch(*found.value());
        });
}

int ompx_sync(ompx_group_t group) noexcept {
    return api::call(
        "ompx_sync", DIOMP_SITE, [&] { return describe(group); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = running.collectives().groups().find(group);
            DIOMP_TRY(found);
            stats.group = found.value()->id();
            auto const call_lock = found.value()->lock_calls();
            sync::call_signature call;
            call.what = sync::operation::sync;
            DIOMP_TRY(found.value()->arrive_and_wait(call));
            return take_late_mismatch(*found.value());
        });
}

int ompx_group_create(ompx_group_t *group, const int *ranks, int size) noexcept {
    return make_group(
        "ompx_group_create", DIOMP_SITE, group,
        [&] { return fmt::format("ranks={}, size={}", fmt::ptr(ranks), size); },
        [&](group::group_registry &groups) -> result<ompx_group_t> {
            DIOMP_TRY(check_members(ranks, "ranks", size));
            return groups.create({ranks, static_cast<std::size_t>(size)});
        });
}

int ompx_group_create_endpoints(ompx_group_t *group, const ompx_endpoint_t *endpoints,
                                int size) noexcept {
    return make_group(
        "ompx_group_create_endpoints", DIOMP_SITE, group,
        [&] { return fmt::format("endpoints={}, size={}", fmt::ptr(endpoints), size); },
        [&](group::group_registry &groups) -> result<ompx_group_t> {
            DIOMP_TRY(check_members(endpoints, "endpoints", size));
            return groups.create_endpoints({endpoints, static_cast<std::size_t>(size)});
        });
}

int ompx_group_create_devices(ompx_group_t ranks, ompx_group_t *result) noexcept {
    return api::call(
        "ompx_group_create_devices", DIOMP_SITE, [&] { return describe(ranks); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(result, "the result"));
            auto found = running.collectives().groups().find(ranks);
            DIOMP_TRY(found);
            if (!found.value()->endpoints().empty()) {
                return error(OMPX_ERR_ARG, "the group has endpoints as members already",
                             "pass a group of ranks");
            }
            auto list = list_devices(running, *found.value());
            DIOMP_TRY(list);
            bool const takes_part = std::ranges::any_of(list.value(), [&](const auto &each) {
                return each.rank == running.job().rank.value();
            });
            if (!takes_part) {
                *result = OMPX_GROUP_NONE;
                return {};
            }
            auto made = running.collectives().groups().create_endpoints(list.value());
            DIOMP_TRY(made);
            *result = made.value();
            describe_to_devices(running, {result, 1});
            return {};
        });
}

int ompx_group_split(ompx_group_t group, int color, int key, ompx_group_t *result) noexcept {
    return make_group(
        "ompx_group_split", DIOMP_SITE, result,
        [&] { return fmt::format("{}, color={}, key={}", describe(group), color, key); },
        [&](group::group_registry &groups) {
            return groups.split(operation::group_split, group, color, key);
        });
}

int ompx_group_split_endpoints(ompx_group_t group, const int *colors, const int *keys,
                               ompx_group_t *results) noexcept {
    return api::call(
        "ompx_group_split_endpoints", DIOMP_SITE, [&] { return describe(group); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(colors, "colors"));
            DIOMP_TRY(api::check_pointer(keys, "keys"));
            DIOMP_TRY(api::check_pointer(results, "results"));
            auto found = running.collectives().groups().find(group);
            DIOMP_TRY(found);
            DIOMP_TRY(check_has_endpoints(*found.value()));
            std::size_t const num_own = found.value()->num_own();
            std::vector<group::group_registry::split_choice> own;
            own.reserve(num_own);
            for (std::size_t i = 0; i < num_own; ++i) {
                own.push_back({colors[i], keys[i]});
            }
            std::span<ompx_group_t> const made(results, num_own);
            DIOMP_TRY(running.collectives().groups().split(operation::group_split_endpoints, group,
                                                           own, made));
            describe_to_devices(running, made);
            return {};
        });
}

int ompx_group_split_node(ompx_group_t group, ompx_group_t *result) noexcept {
    return make_group(
        "ompx_group_split_node", DIOMP_SITE, result, [&] { return describe(group); },
        [&](group::group_registry &groups) -> diomp::result<ompx_group_t> {
            auto found = groups.find(group);
            DIOMP_TRY(found);
            return groups.split(operation::group_split_node, group,
                                static_cast<int>(found.value()->layout().own_node), 0);
        });
}

int ompx_group_dup(ompx_group_t group, ompx_group_t *result) noexcept {
    return make_group(
        "ompx_group_dup", DIOMP_SITE, result, [&] { return describe(group); },
        [&](group::group_registry &groups) {
            return groups.split(operation::group_dup, group, 0, 0);
        });
}

int ompx_group_merge(ompx_group_t a, ompx_group_t b, ompx_group_t *result) noexcept {
    return make_group(
        "ompx_group_merge", DIOMP_SITE, result,
        [&] { return fmt::format("a: {}, b: {}", describe(a), describe(b)); },
        [&](group::group_registry &groups) { return groups.merge(a, b); });
}

int ompx_group_free(ompx_group_t *group) noexcept {
    return api::call(
        "ompx_group_free", DIOMP_SITE, [&] { return fmt::format("group={}", fmt::ptr(group)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(group, "group"));
            DIOMP_TRY(running.collectives().free_group(*group));
            *group = OMPX_GROUP_NONE;
            return {};
        });
}

int ompx_group_size(ompx_group_t group) noexcept {
    return query("ompx_group_size", group, [](const group::group &found, int &size) -> status {
        size = static_cast<int>(found.count());
        return {};
    });
}

int ompx_group_rank(ompx_group_t group) noexcept {
    return query("ompx_group_rank", group, [](const group::group &found, int &rank) -> status {
        rank = static_cast<int>(found.own(0));
        return {};
    });
}

int ompx_group_world_rank(ompx_group_t group, int member) noexcept {
    return query("ompx_group_world_rank", group,
                 [member](const group::group &found, int &rank) -> status {
                     DIOMP_TRY(check_member(found, member));
                     rank = rank_of(found, static_cast<std::size_t>(member)).value();
                     return {};
                 });
}

int ompx_group_node_members(ompx_group_t group, int *members, int count) noexcept {
    return query("ompx_group_node_members", group,
                 [=](const group::group &found, int &number) -> status {
                     if (count < 0) {
                         return error(OMPX_ERR_ARG, "the count is negative",
                                      "pass the number of elements of members");
                     }
                     if (count > 0) {
                         DIOMP_TRY(api::check_pointer(members, "members"));
                     }
                     for (int const each : members_on_own_node(found)) {
                         if (number < count) {
                             members[number] = each;
                         }
                         ++number;
                     }
                     return {};
                 });
}

int ompx_group_num_own_endpoints(ompx_group_t group) noexcept {
    return query("ompx_group_num_own_endpoints", group,
                 [](const group::group &found, int &number) -> status {
                     number = found.endpoints().empty() ? 0 : static_cast<int>(found.num_own());
                     return {};
                 });
}

int ompx_group_endpoint(ompx_group_t group, int member, ompx_endpoint_t *endpoint) noexcept {
    return api::call(
        "ompx_group_endpoint", DIOMP_SITE,
        [&] { return fmt::format("{}, member={}", describe(group), member); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(endpoint, "endpoint"));
            auto found = running.collectives().groups().find(group);
            DIOMP_TRY(found);
            DIOMP_TRY(check_has_endpoints(*found.value()));
            DIOMP_TRY(check_member(*found.value(), member));
            *endpoint = endpoint_of(*found.value(), static_cast<std::size_t>(member));
            return {};
        });
}

int ompx_group_translate(ompx_group_t from, const int *members, int count, ompx_group_t to,
                         int *results) noexcept {
    return api::call(
        "ompx_group_translate", DIOMP_SITE,
        [&] {
            return fmt::format("from: {}, to: {}, count={}", describe(from), describe(to), count);
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            if (count == 0) {
                return {};
            }
            DIOMP_TRY(api::check_pointer(members, "members"));
            DIOMP_TRY(api::check_pointer(results, "results"));
            if (count < 0) {
                return error(OMPX_ERR_ARG, "the count is negative", "pass the number of members");
            }
            auto source = running.collectives().groups().find(from);
            DIOMP_TRY(source);
            auto target = running.collectives().groups().find(to);
            DIOMP_TRY(target);
            return translate(*source.value(), {members, static_cast<std::size_t>(count)},
                             *target.value(), results);
        });
}

} // extern "C"
