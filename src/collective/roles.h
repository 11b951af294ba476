// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who takes part in a call: members that the program counts, endpoints or ranks, and the ranks that
// act for them. In a group of ranks each acts for itself.
#pragma once

#include "collective/collective.h"

namespace diomp::collective {

/// Ranks are group ranks here. Lives as long as the group.
class roles {
public:
    explicit roles(const group::group &of) : group_(of), endpoints_(of.endpoints()) {}

    /// Members.
    [[nodiscard]] std::size_t size() const { return group_.count(); }
    [[nodiscard]] std::size_t num_ranks() const { return group_.size(); }
    [[nodiscard]] std::size_t self() const { return group_.self().index(); }
    [[nodiscard]] std::size_t rank_of(std::size_t member) const {
        return endpoints_.empty() ? member : endpoints_[member].member;
    }
    [[nodiscard]] std::size_t num_of(std::size_t rank) const {
        return endpoints_.empty() ? 1 : endpoints_.of(rank).size();
    }
    /// Member that is number `place` of a rank's.
    [[nodiscard]] std::size_t member(std::size_t rank, std::size_t place) const {
        return endpoints_.empty() ? rank : endpoints_.of(rank)[place];
    }
    /// Number of the member among those of its rank.
    [[nodiscard]] std::size_t place_of(std::size_t of) const {
        std::size_t const rank = rank_of(of);
        std::size_t place = 0;
        while (member(rank, place) != of) {
            ++place;
        }
        return place;
    }
    [[nodiscard]] std::size_t num_own() const { return group_.num_own(); }
    [[nodiscard]] std::size_t own(std::size_t place) const { return group_.own(place); }
    [[nodiscard]] std::size_t most_per_rank() const {
        return endpoints_.empty() ? 1 : endpoints_.most_per_member();
    }
    [[nodiscard]] bool one_each() const { return endpoints_.empty() || endpoints_.one_each(); }
    /// The members of a rank follow each other, in the order of the ranks.
    [[nodiscard]] bool contiguous() const { return endpoints_.empty() || endpoints_.contiguous(); }

private:
    const group::group &group_;
    const group::endpoint_list &endpoints_;
};

} // namespace diomp::collective
