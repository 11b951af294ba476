// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/device_memory.h"

#include "base/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace diomp::offload::remote {

void device_memory::set_up(std::uint64_t base, std::uint64_t nbytes, std::string label) {
    base_ = base;
    nbytes_ = nbytes;
    label_ = std::move(label);
    heap_.emplace(memory::heap::direction::from_front, nbytes);
}

result<std::uint64_t> device_memory::allocate(std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    auto const offset = heap_->allocate(nbytes, memory::heap::granule_bytes, nbytes_);
    if (!offset) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("{}: no space for {}; {} of {} are in use, the largest free block "
                                 "has {}",
                                 label_, format_size(nbytes), format_size(heap_->used_bytes()),
                                 format_size(nbytes_), format_size(heap_->largest_free(nbytes_))),
                     "free memory, or start the service with more --memory");
    }
    touched_bytes_ = std::max(touched_bytes_, heap_->used_bytes());
    touched_extent_ = std::max(touched_extent_, heap_->extent());
    return base_ + *offset;
}

bool device_memory::release(std::uint64_t address) {
    std::lock_guard const guard(mutex_);
    return heap_->release(address - base_).has_value();
}

status device_memory::check(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    std::uint64_t const offset = address - base_;
    auto const block = heap_->find(offset);
    if (!block || offset + nbytes > block->offset + block->reserved) {
        return error(OMPX_ERR_RANGE,
                     fmt::format("{}: {} bytes at {:#x} are not inside memory allocated there",
                                 label_, nbytes, address));
    }
    return {};
}

bool device_memory::has_excess_pages() const {
    std::lock_guard const guard(mutex_);
    return touched_bytes_ - heap_->used_bytes() > std::max(max_idle_bytes, heap_->used_bytes());
}

void device_memory::release_idle(function_ref<bool(std::span<const range>)> post_release) {
    std::lock_guard const guard(mutex_);
    std::vector<range> ranges;
    if (touched_extent_ > heap_->extent()) {
        ranges.push_back({base_ + heap_->extent(), touched_extent_ - heap_->extent()});
    }
    auto const holes = heap_->holes(min_returned_bytes);
    for (auto each = holes.rbegin(); each != holes.rend() && ranges.size() < max_ranges; ++each) {
        ranges.push_back({base_ + each->offset, each->nbytes});
    }
    if (post_release(ranges)) {
        touched_bytes_ = heap_->used_bytes();
        touched_extent_ = heap_->extent();
    }
}

} // namespace diomp::offload::remote
