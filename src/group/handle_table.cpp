// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/handle_table.h"

#include "base/assert.h"

namespace diomp::group {
namespace {

// A handle is neither a canonical user address nor aligned like a pointer, so it cannot be confused
// with one.
constexpr std::uint64_t handle_tag = 0xd10bull;

std::uint64_t bits_of(ompx_group_t handle) { return reinterpret_cast<std::uint64_t>(handle); }

ompx_group_t make_handle(std::uint32_t generation, std::uint32_t index) {
    return reinterpret_cast<ompx_group_t>(handle_tag << 48 |
                                          std::uint64_t{generation & 0xffffffffu} << 16 | index);
}

} // namespace

handle_table::~handle_table() {
    for (auto const &each : owned_) {
        for (slot const &entry : *each) {
            delete entry.stored.load(std::memory_order_relaxed);
        }
    }
}

std::optional<ompx_group_t> handle_table::insert(std::unique_ptr<group> added) {
    std::lock_guard const guard(mutex_);
    std::uint32_t index = 0;
    if (!free_.empty()) {
        index = free_.back();
        free_.pop_back();
    } else if (num_slots_ == max_groups) {
        return std::nullopt;
    } else {
        index = static_cast<std::uint32_t>(num_slots_++);
        if (index % slots_per_chunk == 0) {
            owned_.push_back(std::make_unique<chunk>());
            chunks_[index / slots_per_chunk].store(owned_.back().get(), std::memory_order_release);
        }
    }
    slot &entry = (*owned_[index / slots_per_chunk])[index % slots_per_chunk];
    DIOMP_ASSERT(added != nullptr && entry.stored.load(std::memory_order_relaxed) == nullptr,
                 "a free slot has no group");
    entry.stored.store(added.release(), std::memory_order_release);
    return make_handle(entry.generation.load(std::memory_order_relaxed), index);
}

handle_table::slot *handle_table::slot_of(ompx_group_t handle) const {
    std::uint64_t const bits = bits_of(handle);
    std::size_t const index = bits & 0xffff;
    chunk *const found = chunks_[index / slots_per_chunk].load(std::memory_order_acquire);
    if (bits >> 48 != handle_tag || found == nullptr) {
        return nullptr;
    }
    slot &entry = (*found)[index % slots_per_chunk];
    bool const current =
        entry.generation.load(std::memory_order_relaxed) == (bits >> 16 & 0xffffffff);
    return current ? &entry : nullptr;
}

group *handle_table::find(ompx_group_t handle) const {
    slot *const entry = slot_of(handle);
    return entry == nullptr ? nullptr : entry->stored.load(std::memory_order_acquire);
}

std::unique_ptr<group> handle_table::remove(ompx_group_t handle) {
    std::lock_guard const guard(mutex_);
    slot *const entry = slot_of(handle);
    if (entry == nullptr) {
        return nullptr;
    }
    std::unique_ptr<group> taken(entry->stored.exchange(nullptr, std::memory_order_acq_rel));
    if (taken) {
        entry->generation.fetch_add(1, std::memory_order_relaxed);
        free_.push_back(static_cast<std::uint32_t>(bits_of(handle) & 0xffff));
        DIOMP_ASSERT(free_.size() <= num_slots_, "a slot is free once");
    }
    return taken;
}

std::size_t handle_table::num_groups() const {
    std::lock_guard const guard(mutex_);
    return num_slots_ - free_.size();
}

} // namespace diomp::group
