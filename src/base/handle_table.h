// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds objects by handle without a lock; an invalid handle is detected.
#pragma once

#include "base/assert.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace diomp {

/// Thread-safe. `Handle` is a pointer type that is never dereferenced. A handle consists of a tag,
/// the generation of its slot, and the slot's index: it is neither a canonical user address nor
/// aligned like a pointer, so it cannot be confused with one.
template <typename Object, typename Handle, std::uint64_t Tag>
class handle_table {
public:
    static constexpr std::size_t max_objects = std::size_t{1} << 16;

    /// Handles of tables with different `first_generation` differ.
    explicit handle_table(std::uint32_t first_generation = 0)
        : first_generation_(first_generation) {}
    handle_table(const handle_table &) = delete;
    handle_table &operator=(const handle_table &) = delete;
    ~handle_table() {
        for (auto const &each : owned_) {
            for (slot const &entry : *each) {
                delete entry.stored.load(std::memory_order_relaxed);
            }
        }
    }

    /// nullopt if max_objects objects exist; `added` is then unchanged.
    std::optional<Handle> insert(std::unique_ptr<Object> &&added) {
        std::lock_guard const guard(mutex_);
        std::uint32_t index = 0;
        if (!free_.empty()) {
            index = free_.back();
            free_.pop_back();
        } else if (num_slots_ == max_objects) {
            return std::nullopt;
        } else {
            index = static_cast<std::uint32_t>(num_slots_++);
            if (index % slots_per_chunk == 0) {
                owned_.push_back(std::make_unique<chunk>());
                chunks_[index / slots_per_chunk].store(owned_.back().get(),
                                                       std::memory_order_release);
            }
        }
        slot &entry = (*owned_[index / slots_per_chunk])[index % slots_per_chunk];
        DIOMP_ASSERT(added != nullptr && entry.stored.load(std::memory_order_relaxed) == nullptr,
                     "a free slot has no object");
        std::unique_ptr<Object> taken = std::move(added);
        entry.stored.store(taken.release(), std::memory_order_release);
        return make_handle(first_generation_ + entry.generation.load(std::memory_order_relaxed),
                           index);
    }
    /// nullptr if the value is not a handle or the object has been removed.
    [[nodiscard]] Object *find(Handle handle) const {
        slot *const entry = slot_of(handle);
        return entry == nullptr ? nullptr : entry->stored.load(std::memory_order_acquire);
    }
    /// Removes the object and invalidates the handle.
    std::unique_ptr<Object> remove(Handle handle) {
        std::lock_guard const guard(mutex_);
        slot *const entry = slot_of(handle);
        if (entry == nullptr) {
            return nullptr;
        }
        std::unique_ptr<Object> taken(entry->stored.exchange(nullptr, std::memory_order_acq_rel));
        if (taken) {
            entry->generation.fetch_add(1, std::memory_order_relaxed);
            free_.push_back(static_cast<std::uint32_t>(bits_of(handle) & 0xffff));
            DIOMP_ASSERT(free_.size() <= num_slots_, "a slot is free once");
        }
        return taken;
    }
    [[nodiscard]] std::vector<Object *> all() const {
        std::vector<Object *> found;
        std::lock_guard const guard(mutex_);
        for (auto const &each : owned_) {
            for (slot const &entry : *each) {
                if (Object *const stored = entry.stored.load(std::memory_order_relaxed)) {
                    found.push_back(stored);
                }
            }
        }
        return found;
    }
    [[nodiscard]] std::size_t size() const {
        std::lock_guard const guard(mutex_);
        return num_slots_ - free_.size();
    }

private:
    static constexpr std::size_t slots_per_chunk = 256;
    struct slot {
        std::atomic<Object *> stored{nullptr};
        std::atomic<std::uint32_t> generation{0};
    };
    using chunk = std::array<slot, slots_per_chunk>;

    static std::uint64_t bits_of(Handle handle) { return reinterpret_cast<std::uint64_t>(handle); }
    static Handle make_handle(std::uint32_t generation, std::uint32_t index) {
        return reinterpret_cast<Handle>(Tag << 48 | std::uint64_t{generation} << 16 | index);
    }

    [[nodiscard]] slot *slot_of(Handle handle) const {
        std::uint64_t const bits = bits_of(handle);
        std::size_t const index = bits & 0xffff;
        chunk *const found = chunks_[index / slots_per_chunk].load(std::memory_order_acquire);
        if (bits >> 48 != Tag || found == nullptr) {
            return nullptr;
        }
        slot &entry = (*found)[index % slots_per_chunk];
        bool const current = first_generation_ + entry.generation.load(std::memory_order_relaxed) ==
                             (bits >> 16 & 0xffffffff);
        return current ? &entry : nullptr;
    }

    std::uint32_t const first_generation_;
    std::array<std::atomic<chunk *>, max_objects / slots_per_chunk> chunks_{};
    mutable std::mutex mutex_; ///< leaf lock; protects the members below
    std::vector<std::unique_ptr<chunk>> owned_;
    std::vector<std::uint32_t> free_;
    std::size_t num_slots_ = 0;
};

} // namespace diomp
