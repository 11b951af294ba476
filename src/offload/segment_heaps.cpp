// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/segment_heaps.h"

#include "base/assert.h"

#include <algorithm>

namespace diomp::offload {

using memory::heap;

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t large_bytes = std::size_t{256} << 10;

std::size_t whole_pages(std::size_t nbytes) { return nbytes / page_bytes * page_bytes; }

} // namespace

segment_heaps::segment_heaps(std::size_t nbytes, std::size_t stagger)
    : half_(whole_pages(nbytes / 2)), mapped_begin_(half_ + stagger),
      symmetric_(heap::direction::from_front, half_), private_(heap::direction::from_end, half_),
      mapped_(heap::direction::from_end, whole_pages(nbytes - mapped_begin_)) {}

std::optional<std::uint64_t> segment_heaps::allocate(ompx_mem_kind_t kind, std::size_t nbytes,
                                                     std::size_t alignment) {
    return kind == OMPX_MEM_SYMMETRIC
               ? symmetric_.allocate(nbytes, alignment, half_ - private_.extent())
               : private_.allocate(nbytes, alignment, half_ - symmetric_.extent());
}

std::optional<std::uint64_t> segment_heaps::allocate_mapped(std::size_t nbytes,
                                                            std::size_t alignment) {
    std::size_t const rounded_alignment =
        nbytes < large_bytes ? alignment : std::max(alignment, page_bytes);
    auto const offset = mapped_.allocate(nbytes, rounded_alignment, mapped_.capacity_bytes());
    return offset ? std::optional(*offset + mapped_begin_) : std::nullopt;
}

void segment_heaps::release(std::uint64_t offset) {
    if (offset >= half_) {
        mapped_.release(offset - mapped_begin_, mapped_.capacity_bytes());
    } else if (!symmetric_.release(offset, half_ - private_.extent())) {
        [[maybe_unused]] bool const is_found =
            private_.release(offset, half_ - symmetric_.extent()).has_value();
        DIOMP_ASSERT(is_found, "a released block is in one of the heaps");
    }
}

std::optional<heap::block> segment_heaps::find(std::uint64_t offset) const {
    if (offset >= half_) {
        auto block = offset < mapped_begin_ ? std::nullopt : mapped_.find(offset - mapped_begin_);
        if (block) {
            block->offset += mapped_begin_;
        }
        return block;
    }
    auto const block = symmetric_.find(offset);
    return block ? block : private_.find(offset);
}

std::optional<std::uint64_t> segment_heaps::begin_of(std::uint64_t offset) const {
    if (auto const found = find(offset)) {
        return found->offset;
    }
    // The end of an allocation that fills its granules completely.
    auto const before = offset == 0 ? std::nullopt : find(offset - 1);
    return before && before->offset + before->nbytes == offset ? std::optional(before->offset)
                                                               : std::nullopt;
}

std::uint64_t segment_heaps::largest_free(bool by_openmp) const {
    return by_openmp ? mapped_.largest_free(mapped_.capacity_bytes())
                     : std::max(symmetric_.largest_free(half_ - private_.extent()),
                                private_.largest_free(half_ - symmetric_.extent()));
}

} // namespace diomp::offload
