// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What barriers of groups in regions need to know of a group. The module of groups is not below
// this one, so the runtime passes a function that describes them.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace diomp::offload {

struct group_members {
    std::uint64_t id = 0;              ///< equal on all members, unique among groups
    std::span<const world_rank> ranks; ///< [member], valid as long as the group
    std::size_t self = 0;              ///< member
    /// [member] of a group of endpoints, OpenMP's numbers; -1: the host. Empty: a group of ranks.
    std::vector<int> devices;
    bool has_several_of_a_rank = false; ///< endpoints; `devices` is empty then
};

/// Describes a group by its handle. OMPX_ERR_ARG: there is none.
using group_finder = std::function<result<group_members>(ompx_group_t)>;

} // namespace diomp::offload
