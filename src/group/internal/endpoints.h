// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The endpoints of a group: devices of its members.
//
// The members of such a group are the ranks, in the order of their first endpoint. Members
// synchronize and communicate; the numbering of a call on devices counts endpoints.
#pragma once

#include "base/ids.h"
#include "diomp/types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::group {

/// A device of a member.
struct endpoint {
    std::uint32_t member = 0;
    std::int32_t device = 0; ///< OpenMP device number at that rank; -1: host

    friend bool operator==(const endpoint &, const endpoint &) = default;
};

/// Immutable, so any thread may read it.
class endpoint_list {
public:
    /// The list of a group of ranks: empty.
    endpoint_list() = default;
    /// Each of the `num_members` members must have at least one endpoint.
    endpoint_list(std::vector<endpoint> all, std::size_t num_members);

    [[nodiscard]] bool empty() const { return all_.empty(); }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    [[nodiscard]] const endpoint &operator[](std::size_t index) const { return all_[index]; }
    /// Indices of a member's endpoints, ascending.
    [[nodiscard]] std::span<const std::uint32_t> of(std::size_t member) const {
        return std::span(by_member_).subspan(first_[member], first_[member + 1] - first_[member]);
    }
    /// Each member has exactly one endpoint. If contiguous too, both have the same numbers.
    [[nodiscard]] bool one_each() const { return all_.size() + 1 == first_.size(); }
    /// The endpoints are ordered by member.
    [[nodiscard]] bool contiguous() const { return contiguous_; }
    /// The largest number of endpoints of one member.
    [[nodiscard]] std::size_t max_per_member() const { return max_per_member_; }

private:
    std::vector<endpoint> all_;
    std::vector<std::uint32_t> by_member_; ///< indices into all_, ordered by member
    std::vector<std::uint32_t> first_;     ///< [member] start in by_member_, and the end
    std::size_t max_per_member_ = 1;
    bool contiguous_ = true;
};

/// An endpoint list of the program as members and their endpoints.
struct parsed_endpoints {
    std::vector<world_rank> members; ///< in the order of their first endpoint
    std::vector<endpoint> endpoints;
    /// Creations of one set of members at the same time need different keys.
    std::uint64_t key = 0;
};
parsed_endpoints split_endpoint_list(std::span<const ompx_endpoint_t> list);

} // namespace diomp::group
