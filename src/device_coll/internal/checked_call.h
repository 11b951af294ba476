// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A collective call on devices whose arguments have been checked, with the location of all buffers.
#pragma once

#include "coll/collective.h"
#include "offload/accelerators.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace diomp::device_coll {

/// A buffer and, once there is one, its host address.
struct device_buffer_view {
    offload::device_ptr location;
    std::optional<int> remote_index; ///< a remote device's memory, see offload::own_side
    std::byte *host = nullptr;
    std::unique_ptr<std::byte[]> copy; ///< host copy of memory that the host cannot load
    std::size_t nbytes = 0;

    [[nodiscard]] bool needs_copy() const { return location.on != nullptr || remote_index; }
};

/// The buffers of one endpoint in a call.
struct endpoint_views {
    device_buffer_view src;
    device_buffer_view dst;
    coll::buffer_use use;
};

/// A checked call of all of the caller's endpoints.
struct checked_call {
    coll::request args;
    std::vector<endpoint_views> own; ///< in the group's order
    std::vector<std::shared_ptr<const coll::block_lists>> blocks;
    /// The caller's only endpoint, if it is a remote device whose session can make the call.
    std::optional<int> session_index;
};

} // namespace diomp::device_coll
