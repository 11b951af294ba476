// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "transport/types.h"

#include <cstddef>
#include <cstdint>

namespace diomp::memory {

/// Location of a transfer's remote side.
struct location {
    std::byte *direct = nullptr;        ///< loadable here, or nullptr
    std::uint64_t remote_address = 0;   ///< in the owner's address space
    bool in_segment = false;            ///< false: registered private memory
    transport::memory_kinds kinds = {}; ///< not both host: a network transfer of device memory
};

/// The location `offset` bytes after another one.
[[nodiscard]] inline location at_offset(location of, std::size_t offset) {
    of.remote_address += offset;
    of.direct = of.direct == nullptr ? nullptr : of.direct + offset;
    return of;
}

} // namespace diomp::memory
