// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Maps the members of a call (endpoints, or the ranks themselves) to the ranks that act for them.
#pragma once

#include "coll/collective.h"
#include "group/group.h"

namespace diomp::coll {

/// Ranks are group ranks. Must not outlive the group.
class member_map {
public:
    explicit member_map(const group::group &of) : group_(of), endpoints_(of.endpoints()) {}

    /// Number of members.
    [[nodiscard]] std::size_t size() const { return group_.count(); }
    [[nodiscard]] std::size_t num_ranks() const { return group_.size(); }
    [[nodiscard]] std::size_t self() const { return group_.self().index(); }
    [[nodiscard]] std::size_t rank_of(std::size_t member) const {
        return endpoints_.empty() ? member : endpoints_[member].member;
    }
    [[nodiscard]] std::size_t num_members_of(std::size_t rank) const {
        return endpoints_.empty() ? 1 : endpoints_.of(rank).size();
    }
    /// Number in the group of a rank's member `index`.
    [[nodiscard]] std::size_t member(std::size_t rank, std::size_t index) const {
        return endpoints_.empty() ? rank : endpoints_.of(rank)[index];
    }
    /// Index of the member among those of its rank.
    [[nodiscard]] std::size_t index_in_rank(std::size_t of) const {
        std::size_t const rank = rank_of(of);
        std::size_t index = 0;
        while (member(rank, index) != of) {
            ++index;
        }
        return index;
    }
    [[nodiscard]] std::size_t num_own() const { return group_.num_own(); }
    [[nodiscard]] std::size_t own(std::size_t index) const { return group_.own(index); }
    [[nodiscard]] std::size_t max_per_rank() const {
        return endpoints_.empty() ? 1 : endpoints_.max_per_member();
    }
    [[nodiscard]] bool one_each() const { return endpoints_.empty() || endpoints_.one_each(); }
    /// The members are ordered by rank.
    [[nodiscard]] bool contiguous() const { return endpoints_.empty() || endpoints_.contiguous(); }

private:
    const group::group &group_;
    const group::endpoint_list &endpoints_;
};

} // namespace diomp::coll
