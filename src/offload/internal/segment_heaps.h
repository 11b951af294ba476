// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ranges of a device segment are allocated. The first half is for ompx_target_alloc:
// symmetric memory, which all ranks allocate together, grows from its front, asymmetric and local
// memory from its end. The second half is for memory that OpenMP maps and allocates. Allocations of
// one rank alone, and of different sizes, therefore do not shift what all ranks map alike.
#pragma once

#include "diomp/types.h"
#include "memory/heap.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::offload {

/// Not thread-safe. Offsets are from the beginning of the segment. In segments of different sizes,
/// what OpenMP has allocated alike has equal distances from mapped_end().
class segment_heaps {
public:
    /// The second half begins `stagger` bytes after the beginning of a page.
    segment_heaps(std::size_t nbytes, std::size_t stagger);

    /// A range for ompx_target_alloc; nullopt: no space.
    std::optional<std::uint64_t> allocate(ompx_mem_kind_t kind, std::size_t nbytes,
                                          std::size_t alignment);
    /// A range for OpenMP.
    std::optional<std::uint64_t> allocate_mapped(std::size_t nbytes, std::size_t alignment);
    /// The block must begin at the offset.
    void release(std::uint64_t offset);
    /// The beginning of the block that contains the offset, or that ends there if no other begins
    /// there.
    [[nodiscard]] std::optional<std::uint64_t> begin_of(std::uint64_t offset) const;

    [[nodiscard]] std::uint64_t symmetric_bytes() const { return symmetric_.used_bytes(); }
    [[nodiscard]] std::uint64_t local_bytes() const {
        return private_.used_bytes() + mapped_.used_bytes();
    }
    [[nodiscard]] std::uint64_t largest_free(bool by_openmp) const;
    /// Symmetric memory lies in [0, symmetric_end()), OpenMP's in [mapped_begin(), size).
    [[nodiscard]] std::uint64_t symmetric_end() const { return symmetric_.extent(); }
    [[nodiscard]] std::uint64_t mapped_begin() const {
        return mapped_begin_ + mapped_.capacity_bytes() - mapped_.extent();
    }
    /// End of the memory for OpenMP: whole pages from mapped_begin_ on.
    [[nodiscard]] std::uint64_t mapped_end() const {
        return mapped_begin_ + mapped_.capacity_bytes();
    }
    [[nodiscard]] std::uint64_t mapped_bytes() const { return mapped_.capacity_bytes(); }
    /// Asymmetric and local memory lies in [private_begin(), half).
    [[nodiscard]] std::uint64_t private_begin() const { return half_ - private_.extent(); }

private:
    [[nodiscard]] std::optional<memory::heap::block> find(std::uint64_t offset) const;

    std::uint64_t half_;         ///< end of the first half
    std::uint64_t mapped_begin_; ///< begin of the second half
    memory::heap symmetric_;
    memory::heap private_;
    memory::heap mapped_; ///< offsets relative to mapped_begin_
};

} // namespace diomp::offload
