// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/internal/shadow.h"

#include "base/sanitizer.h"

namespace diomp::memory {

shadow::shadow(std::byte *base, std::uint64_t size_bytes)
    : is_active_(has_address_sanitizer()), base_(base), size_bytes_(size_bytes), end_(size_bytes) {
    if (is_active_) {
        __asan_poison_memory_region(base_ - front_guard_bytes, front_guard_bytes);
        extend_guards(0, 0);
    }
}

// Another segment, or other memory, may lie at these addresses later.
shadow::~shadow() {
    if (is_active_) {
        __asan_unpoison_memory_region(base_ - front_guard_bytes, front_guard_bytes + front_);
        __asan_unpoison_memory_region(base_ + end_, size_bytes_ - end_);
    }
}

void shadow::poison(std::uint64_t begin, std::uint64_t end) {
    if (begin < end) {
        __asan_poison_memory_region(base_ + begin, end - begin);
    }
}

void shadow::extend_guards(std::uint64_t front_extent, std::uint64_t end_extent) {
    std::uint64_t const free_end = size_bytes_ - end_extent;
    std::uint64_t const front = std::min(front_extent + guard_bytes, free_end);
    std::uint64_t const end = std::max(free_end, front_extent + guard_bytes) - guard_bytes;
    poison(front_, front);
    front_ = std::max(front_, front);
    poison(end, end_);
    end_ = std::min(end_, end);
}

void shadow::allocated(std::uint64_t offset, std::uint64_t nbytes, std::uint64_t front_extent,
                       std::uint64_t end_extent) {
    if (is_active_) {
        extend_guards(front_extent, end_extent);
        __asan_unpoison_memory_region(base_ + offset, nbytes);
    }
}

void shadow::released(std::uint64_t offset, std::uint64_t reserved) {
    if (is_active_) {
        poison(offset, offset + reserved);
    }
}

} // namespace diomp::memory
