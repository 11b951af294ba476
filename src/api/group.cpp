// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/state.h"

using namespace diomp;

namespace {

std::string describe(ompx_group_t group) {
    return group == nullptr ? std::string("group=world") : fmt::format("group={}", fmt::ptr(group));
}

/// A number out of a group, or a negative status.
template <typename Get>
int query(const char *function, ompx_group_t group, Get &&get) {
    int number = 0;
    int const outcome = api::call(
        function, DIOMP_SITE, [&] { return describe(group); },
        [&](runtime::runtime &running, api::account &) -> status {
            auto found = running.groups().find(group);
            DIOMP_TRY(found);
            return get(*found.value(), number);
        });
    return outcome < 0 ? outcome : number;
}

/// Runs make(registry) -> result<ompx_group_t> and hands the new group out.
template <typename Arguments, typename Make>
int make_group(const char *function, const void *site, ompx_group_t *into, Arguments &&arguments,
               Make &&make) {
    return api::call(function, site, arguments,
                     [&](runtime::runtime &running, api::account &) -> status {
                         DIOMP_TRY(api::check_pointer(into, "the result"));
                         auto made = make(running.groups());
                         DIOMP_TRY(made);
                         *into = made.value();
                         return {};
                     });
}

} // namespace

extern "C" {

int ompx_barrier(void) noexcept { return ompx_barrier_group(nullptr); }

int ompx_barrier_group(ompx_group_t group) noexcept {
    return api::call(
        "ompx_barrier", DIOMP_SITE, [&] { return describe(group); },
        [&](runtime::runtime &running, api::account &) -> status {
            auto found = running.groups().find(group);
            DIOMP_TRY(found);
            DIOMP_TRY(api::fence_before_barrier(running));
            auto const turn = found.value()->enter();
            sync::call_signature call;
            call.what = sync::operation::barrier;
            return found.value()->meet(call);
        });
}

int ompx_group_create(ompx_group_t *group, const int *ranks, int size) noexcept {
    return make_group(
        "ompx_group_create", DIOMP_SITE, group,
        [&] { return fmt::format("ranks={}, size={}", fmt::ptr(ranks), size); },
        [&](group::group_registry &groups) -> result<ompx_group_t> {
            DIOMP_TRY(api::check_pointer(ranks, "ranks"));
            if (size < 1) {
                return error(OMPX_ERR_ARG,
                             fmt::format("a group has at least one member, not {}", size),
                             "list the caller's rank at least");
            }
            return groups.create({ranks, static_cast<std::size_t>(size)});
        });
}

int ompx_group_split(ompx_group_t group, int color, int key, ompx_group_t *result) noexcept {
    return make_group(
        "ompx_group_split", DIOMP_SITE, result,
        [&] { return fmt::format("{}, color={}, key={}", describe(group), color, key); },
        [&](group::group_registry &groups) { return groups.split(group, color, key); });
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
        [&](runtime::runtime &running, api::account &) -> status {
            DIOMP_TRY(api::check_pointer(group, "group"));
            DIOMP_TRY(running.groups().free(*group));
            *group = OMPX_GROUP_NONE;
            return {};
        });
}

int ompx_group_size(ompx_group_t group) noexcept {
    return query("ompx_group_size", group, [](const group::group &found, int &size) -> status {
        size = static_cast<int>(found.size());
        return {};
    });
}

int ompx_group_rank(ompx_group_t group) noexcept {
    return query("ompx_group_rank", group, [](const group::group &found, int &rank) -> status {
        rank = found.self().value();
        return {};
    });
}

int ompx_group_world_rank(ompx_group_t group, int member) noexcept {
    return query(
        "ompx_group_world_rank", group, [member](const group::group &found, int &rank) -> status {
            if (member < 0 || static_cast<std::size_t>(member) >= found.size()) {
                return error(OMPX_ERR_RANK,
                             fmt::format("{} is no rank of this group of {}", member, found.size()),
                             fmt::format("pass a group rank from 0 to {}", found.size() - 1));
            }
            rank = found.members()[static_cast<std::size_t>(member)].value();
            return {};
        });
}

} // extern "C"
