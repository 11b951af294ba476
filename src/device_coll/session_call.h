// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A collective call on memory of remote devices, as the host of a device sends it to the device's
// session. The sessions of the devices with one index on all ranks are the ranks of a job, which
// makes the call: rank i of it is the device of rank i.
#pragma once

#include "base/result.h"
#include "coll/request.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::device_coll {

struct session_call {
    /// The group of the host, group::id(): the sessions have a group of their own for it.
    std::uint64_t group = 0;
    /// The members' ranks, in the first calls until one has succeeded; empty later.
    std::vector<int> ranks;
    /// Addresses are device addresses. operation::none: the group is freed.
    coll::request args;
};

[[nodiscard]] std::string encode(const session_call &call);
/// Errors: OMPX_ERR_ARG.
result<session_call> decode_session_call(std::string_view bytes);

/// A group of the host for regions, which pass the handle that it has on the host.
struct session_group {
    ompx_group_t handle = nullptr;
    std::uint64_t group = 0; ///< as in session_call
    std::vector<int> ranks;  ///< empty: the group is freed

    /// The group of regions, for session_call: the host's own calls have another one, since both
    /// may make calls at the same time.
    [[nodiscard]] static std::uint64_t of_regions(std::uint64_t group) { return ~group; }
};

[[nodiscard]] std::string encode(const session_group &group);
/// Errors: OMPX_ERR_ARG.
result<session_group> decode_session_group(std::string_view bytes);

} // namespace diomp::device_coll
