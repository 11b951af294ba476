// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/device_memory.h"

#include "base/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

void own_memory::add(range_map &ranges, std::uint64_t address, std::size_t nbytes) {
    std::size_t &known = ranges[address]; // symbols may share an address
    known = std::max(known, nbytes);
}

bool own_memory::contains(const range_map &ranges, std::uint64_t address, std::size_t nbytes) {
    auto const next = ranges.upper_bound(address);
    if (next == ranges.begin()) {
        return false;
    }
    auto const &[begin, size] = *std::prev(next);
    std::uint64_t const offset = address - begin;
    return offset < size && nbytes <= size - offset;
}

void own_memory::add_allocation(std::uint64_t address, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    allocations_.insert_or_assign(address, nbytes);
}

void own_memory::remove_allocation(std::uint64_t address) {
    std::lock_guard const guard(mutex_);
    allocations_.erase(address);
}

std::vector<std::uint64_t> own_memory::add_symbols(const std::vector<symbol> &symbols,
                                                   const std::vector<location> &locations) {
    std::vector<std::uint64_t> addresses;
    addresses.reserve(symbols.size());
    std::lock_guard const guard(mutex_);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        location const &found = locations[i];
        addresses.push_back(found.address);
        if (found.address != 0 && symbols[i].nbytes > 0) {
            add(symbols_, found.address, symbols[i].nbytes);
        }
        if (found.is_variable) {
            add(variables_, found.address, symbols[i].nbytes);
        }
    }
    return addresses;
}

bool own_memory::has(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    return contains(allocations_, address, nbytes) || contains(symbols_, address, nbytes);
}

bool own_memory::is_zero_copy(std::uint64_t address, std::size_t nbytes) const {
    if (!is_network_reachable_) {
        return false;
    }
    std::lock_guard const guard(mutex_);
    return contains(allocations_, address, nbytes) || contains(variables_, address, nbytes);
}

} // namespace diomp::offload::remote
