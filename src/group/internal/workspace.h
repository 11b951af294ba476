// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The allocator of what a group places in the runtime's part of a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace diomp::group {

/// Allocates memory in the calling rank's own slot, as offsets from its start.
class workspace {
public:
    virtual ~workspace() = default;
    /// nullopt also if less than `min_free_bytes` contiguous bytes would remain.
    virtual std::optional<std::uint64_t> allocate(std::size_t nbytes,
                                                  std::size_t min_free_bytes) = 0;
    std::optional<std::uint64_t> allocate(std::size_t nbytes) { return allocate(nbytes, 0); }
    virtual void release(std::uint64_t slot_offset) = 0;
    /// Whether the range lies in the caller's own slot, so that other nodes can put into it.
    [[nodiscard]] virtual bool contains(std::span<const std::byte> range) const = 0;
};

} // namespace diomp::group
