// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The endpoints of a group: devices of its members.
//
// The members of such a group are the ranks in the order in which the endpoints name them first.
// Members meet and talk; endpoints are what a call on devices counts.
#pragma once

#include "base/ids.h"
#include "diomp.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::group {

/// A device of a member.
struct endpoint {
    std::uint32_t member = 0;
    std::int32_t device = 0; ///< OpenMP's number at that rank, or -1: its host

    friend bool operator==(const endpoint &, const endpoint &) = default;
};

/// Fixed once made; any thread.
class endpoint_list {
public:
    /// Of a group of ranks.
    endpoint_list() = default;
    /// Every one of `num_members` members has one at least.
    endpoint_list(std::vector<endpoint> all, std::size_t num_members);

    [[nodiscard]] bool empty() const { return all_.empty(); }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    [[nodiscard]] const endpoint &operator[](std::size_t index) const { return all_[index]; }
    /// Indices of a member's endpoints, ascending.
    [[nodiscard]] std::span<const std::uint32_t> of(std::size_t member) const {
        return std::span(by_member_).subspan(first_[member], first_[member + 1] - first_[member]);
    }
    /// Every member has one, so that endpoints have the numbers of their members.
    [[nodiscard]] bool one_each() const { return all_.size() + 1 == first_.size(); }
    /// Each member's endpoints follow each other, in the order of the members.
    [[nodiscard]] bool contiguous() const { return contiguous_; }
    /// The largest number of endpoints that a member has.
    [[nodiscard]] std::size_t most_per_member() const { return most_; }

private:
    std::vector<endpoint> all_;
    std::vector<std::uint32_t> by_member_; ///< indices, ordered by member
    std::vector<std::uint32_t> first_;     ///< [member] in by_member_, and one more
    std::size_t most_ = 1;
    bool contiguous_ = true;
};

/// The program's list, taken apart.
struct endpoint_parts {
    std::vector<world_rank> members; ///< in the order in which the endpoints name them first
    std::vector<endpoint> endpoints;
};
endpoint_parts take_apart(std::span<const ompx_endpoint_t> list);

} // namespace diomp::group
