// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Outstanding gets of a rank, by numbers that can be sent in messages.
#pragma once

#include "base/assert.h"
#include "transport/types.h"

#include <cstdint>
#include <vector>

namespace diomp::transport {

/// A reused index has another generation.
struct get_id {
    std::uint32_t index = ~std::uint32_t{0};
    std::uint32_t generation = 0;
};

/// Form in a message.
constexpr std::uint64_t to_number(get_id id) {
    return (std::uint64_t{id.index} << 32) | std::uint64_t{id.generation};
}
constexpr get_id to_get_id(std::uint64_t number) {
    return {static_cast<std::uint32_t>(number >> 32), static_cast<std::uint32_t>(number)};
}

/// Guarded by its owner's lock, except functions that say otherwise.
class pending_gets {
public:
    struct entry {
        std::byte *destination = nullptr;
        std::size_t left = 0;
        completion *done = nullptr;
        std::uint32_t generation = 0;
    };

    get_id begin(void *destination, std::size_t nbytes, completion &done) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(entries_.size()));
            entries_.emplace_back();
        }
        std::uint32_t const index = free_.back();
        free_.pop_back();
        entry &made = entries_[index];
        DIOMP_ASSERT(made.done == nullptr, "a free entry has no transfer");
        made.destination = static_cast<std::byte *>(destination);
        made.left = nbytes;
        made.done = &done;
        count_.fetch_add(1, std::memory_order_relaxed);
        return {index, made.generation};
    }
    /// nullptr: the get has failed.
    [[nodiscard]] entry *find(get_id id) {
        bool const is_known = id.index < entries_.size() &&
                              entries_[id.index].generation == id.generation &&
                              entries_[id.index].done != nullptr;
        return is_known ? &entries_[id.index] : nullptr;
    }
    void finish(get_id id) {
        DIOMP_ASSERT(find(id) != nullptr, "a get ends once");
        entry &over = entries_[id.index];
        over.done->end();
        over.done = nullptr;
        ++over.generation;
        free_.push_back(id.index);
        count_.fetch_sub(1, std::memory_order_relaxed);
    }
    void fail(int code) {
        for (entry &each : entries_) {
            if (each.done != nullptr) {
                each.done->end(code);
                each.done = nullptr;
                ++each.generation;
            }
        }
    }

    /// Any thread. Includes gets that have failed.
    [[nodiscard]] std::size_t count() const { return count_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::size_t bytes() const {
        std::size_t sum = 0;
        for (entry const &each : entries_) {
            sum += each.done != nullptr ? each.left : 0;
        }
        return sum;
    }

private:
    std::vector<entry> entries_;
    std::vector<std::uint32_t> free_;
    std::atomic<std::size_t> count_{0};
};

} // namespace diomp::transport
