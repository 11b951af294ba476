// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups of ranks and of endpoints: an owner, a view, and fence and barrier.
#ifndef DIOMP_GROUP_HPP
#define DIOMP_GROUP_HPP

#include "diomp.h"
#include "diomp/error.hpp"

#include <cstddef>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace diomp {
inline namespace v1 {

/// Refers to a group without owning it; by default to the world. Calls on an invalid view are
/// errors. The functions do not block.
class group_ref {
public:
    constexpr group_ref() noexcept = default;
    constexpr group_ref(ompx_group_t handle) noexcept : handle_(handle) {}

    [[nodiscard]] constexpr ompx_group_t handle() const noexcept { return handle_; }
    /// False for no group, such as the result of a split with a negative color.
    [[nodiscard]] bool valid() const noexcept { return handle_ != OMPX_GROUP_NONE; }
    [[nodiscard]] explicit operator bool() const noexcept { return valid(); }

    [[nodiscard]] int size() const { return detail::check(ompx_group_size(handle_)); }
    /// This process's number in the group; an error if it is not a member.
    [[nodiscard]] int rank() const { return detail::check(ompx_group_rank(handle_)); }
    [[nodiscard]] int world_rank(int member) const {
        return detail::check(ompx_group_world_rank(handle_, member));
    }
    /// Rank and device of a member of a group of endpoints.
    [[nodiscard]] ompx_endpoint_t endpoint(int member) const {
        ompx_endpoint_t found{};
        detail::check(ompx_group_endpoint(handle_, member, &found));
        return found;
    }
    [[nodiscard]] int num_own_endpoints() const {
        return detail::check(ompx_group_num_own_endpoints(handle_));
    }
    /// The number of a member in another group; OMPX_NO_MEMBER if it is not a member there.
    [[nodiscard]] int translate(int member, group_ref to) const {
        int result = OMPX_NO_MEMBER;
        detail::check(ompx_group_translate(handle_, &member, 1, to.handle(), &result));
        return result;
    }
    /// The numbers of the members on the caller's node, ascending.
    [[nodiscard]] std::vector<int> node_members() const {
        std::vector<int> members(
            static_cast<std::size_t>(detail::check(ompx_group_node_members(handle_, nullptr, 0))));
        detail::check(
            ompx_group_node_members(handle_, members.data(), static_cast<int>(members.size())));
        return members;
    }

private:
    ompx_group_t handle_ = ompx_group_world;
};

/// Owns a group. The creating functions and the destructor are collective over its members (split:
/// over the group that is split; merge: over the union).
class group {
public:
    /// No group.
    group() noexcept = default;
    group(group &&other) noexcept : handle_(std::exchange(other.handle_, OMPX_GROUP_NONE)) {}
    group &operator=(group &&other) noexcept {
        if (this != &other) {
            free();
            handle_ = std::exchange(other.handle_, OMPX_GROUP_NONE);
        }
        return *this;
    }
    group(const group &) = delete;
    group &operator=(const group &) = delete;
    ~group() { free(); }

    [[nodiscard]] static constexpr group_ref world() noexcept { return {}; }
    /// A group of the listed world ranks, in that order; only these ranks call.
    template <std::ranges::input_range R>
        requires std::is_convertible_v<std::ranges::range_value_t<R>, int>
    [[nodiscard]] static group of(const R &world_ranks) {
        const std::vector<int> ranks(std::ranges::begin(world_ranks),
                                     std::ranges::end(world_ranks));
        group made;
        detail::check(
            ompx_group_create(&made.handle_, ranks.data(), static_cast<int>(ranks.size())));
        return made;
    }
    /// A group of the listed endpoints, in that order; only their ranks call.
    [[nodiscard]] static group of_endpoints(const std::vector<ompx_endpoint_t> &endpoints) {
        group made;
        detail::check(ompx_group_create_endpoints(&made.handle_, endpoints.data(),
                                                  static_cast<int>(endpoints.size())));
        return made;
    }
    /// A group of all devices that the members of a group of ranks drive.
    [[nodiscard]] static group of_devices(group_ref ranks = {}) {
        group made;
        detail::check(ompx_group_create_devices(ranks.handle(), &made.handle_));
        return made;
    }
    /// A group of the same members with an independent order of calls.
    [[nodiscard]] static group dup(group_ref from) {
        group made;
        detail::check(ompx_group_dup(from.handle(), &made.handle_));
        return made;
    }
    /// A group of the members with equal color, ordered by key; no group for a negative color.
    [[nodiscard]] static group split(group_ref from, int color, int key = 0) {
        group made;
        detail::check(ompx_group_split(from.handle(), color, key, &made.handle_));
        return made;
    }
    /// A group of the members on the caller's node, in the order of `from`.
    [[nodiscard]] static group split_node(group_ref from = {}) {
        group made;
        detail::check(ompx_group_split_node(from.handle(), &made.handle_));
        return made;
    }
    /// A group of the members of a, then those of b that are not in a.
    [[nodiscard]] static group merge(group_ref a, group_ref b) {
        group made;
        detail::check(ompx_group_merge(a.handle(), b.handle(), &made.handle_));
        return made;
    }

    // NOLINTNEXTLINE(google-explicit-constructor): a group converts to a view implicitly
    operator group_ref() const noexcept { return handle_; }
    [[nodiscard]] ompx_group_t handle() const noexcept { return handle_; }
    [[nodiscard]] bool valid() const noexcept { return group_ref(handle_).valid(); }
    [[nodiscard]] explicit operator bool() const noexcept { return valid(); }
    [[nodiscard]] int size() const { return group_ref(handle_).size(); }
    [[nodiscard]] int rank() const { return group_ref(handle_).rank(); }
    [[nodiscard]] int world_rank(int group_rank) const {
        return group_ref(handle_).world_rank(group_rank);
    }

private:
    void free() noexcept {
        if (valid() && ompx_is_initialized() == 1) {
            ompx_group_free(&handle_);
        }
    }

    ompx_group_t handle_ = OMPX_GROUP_NONE;
};

/// Blocks until this rank's transfers (to the group's members) are complete.
inline void fence() { detail::check(ompx_fence()); }
inline void fence(group_ref group) { detail::check(ompx_fence_group(group.handle())); }
/// Blocks until this rank's transfers to `rank` are complete.
inline void fence_rank(int rank) { detail::check(ompx_fence_rank(rank)); }
/// Orders this rank's earlier puts to each rank before its later ones, without completion.
inline void order() { detail::check(ompx_order()); }
/// Barrier without a fence; collective over the group, blocks. No default argument, because of
/// POSIX's sync().
inline void sync(group_ref group) { detail::check(ompx_sync(group.handle())); }
/// Barrier; collective over the group, blocks, includes a fence.
inline void barrier() { detail::check(ompx_barrier()); }
inline void barrier(group_ref group) { detail::check(ompx_barrier_group(group.handle())); }

} // namespace v1
} // namespace diomp

#endif // DIOMP_GROUP_HPP
