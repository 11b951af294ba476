// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tells AddressSanitizer which bytes of this rank's segment belong to a block, in programs that are
// compiled for it. No effect in others.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace diomp::memory {

/// Bytes after a block of this size that belong to no block: a sixteenth, as in AddressSanitizer's
/// own allocator, since the stride of an overflow grows with the block.
[[nodiscard]] constexpr std::uint64_t redzone_of(std::uint64_t nbytes) {
    return std::clamp<std::uint64_t>(std::bit_floor(nbytes / 16), 64, 2048);
}

/// Offsets are from the segment's base. The shadow of a byte is memory, too, an eighth of it, so
/// the unused range between the two heaps is poisoned only next to them. The caller locks.
class shadow {
public:
    /// Poisoned beyond the outermost block of each heap, and before the segment.
    static constexpr std::uint64_t guard_bytes = std::uint64_t{64} << 10;
    static constexpr std::uint64_t front_guard_bytes = 64;

    shadow(std::byte *base, std::uint64_t size_bytes);
    ~shadow();
    shadow(const shadow &) = delete;
    shadow &operator=(const shadow &) = delete;

    /// A new block; the extents are those of the heaps that include it.
    void allocated(std::uint64_t offset, std::uint64_t nbytes, std::uint64_t front_extent,
                   std::uint64_t end_extent);
    /// A block that is a block no more; `reserved` includes its redzone.
    void released(std::uint64_t offset, std::uint64_t reserved);

private:
    void extend_guards(std::uint64_t front_extent, std::uint64_t end_extent);
    void poison(std::uint64_t begin, std::uint64_t end);

    bool is_active_;
    std::byte *base_;
    std::uint64_t size_bytes_;
    std::uint64_t front_ = 0; ///< [0, front_) has been poisoned or is in blocks
    std::uint64_t end_;       ///< so has [end_, size)
};

} // namespace diomp::memory
