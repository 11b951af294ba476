// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory of events. Programs keep copies of events after a wait, or pass variables that they
// have not initialised: such a value must be detected without a read through it.
#include "base/assert.h"
#include "rma/event.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace diomp::rma {
namespace {

struct event_slot {
    alignas(ompx_event) std::byte storage[sizeof(ompx_event)];
    std::atomic<bool> is_known{false}; ///< to the program: it may wait for the event
};

/// Any thread. Chunk k has first_chunk << k slots, and is never returned.
class event_pool {
public:
    void *take() {
        std::lock_guard const guard(mutex_);
        if (free_.empty()) {
            grow();
        }
        event_slot *const taken = free_.front();
        free_.pop_front();
        taken->is_known.store(true, std::memory_order_relaxed);
        return taken->storage;
    }
    void give_back(void *memory) {
        auto *const slot = static_cast<event_slot *>(memory);
        slot->is_known.store(false, std::memory_order_relaxed);
        std::lock_guard const guard(mutex_);
        free_.push_back(slot); // oldest first: a slot is reused as late as possible
    }
    /// The slot that begins at the address, if there is one.
    [[nodiscard]] event_slot *find(const void *address) const {
        auto const wanted = reinterpret_cast<std::uintptr_t>(address);
        for (std::size_t k = 0; k < max_chunks; ++k) {
            event_slot *const chunk = chunks_[k].load(std::memory_order_acquire);
            if (chunk == nullptr) {
                return nullptr;
            }
            std::uintptr_t const inside = wanted - reinterpret_cast<std::uintptr_t>(chunk);
            if (inside < (first_chunk << k) * sizeof(event_slot)) {
                return inside % sizeof(event_slot) == 0 ? chunk + inside / sizeof(event_slot)
                                                        : nullptr;
            }
        }
        return nullptr;
    }

private:
    static constexpr std::size_t first_chunk = 256;
    static constexpr std::size_t max_chunks = 32;

    void grow() {
        DIOMP_ASSERT(num_chunks_ < max_chunks, "the events fit into memory");
        std::size_t const count = first_chunk << num_chunks_;
        auto *const chunk = new event_slot[count];
        chunks_[num_chunks_].store(chunk, std::memory_order_release);
        ++num_chunks_;
        for (std::size_t i = 0; i < count; ++i) {
            free_.push_back(chunk + i);
        }
    }

    std::array<std::atomic<event_slot *>, max_chunks> chunks_{};
    std::mutex mutex_; ///< leaf lock; protects the members below
    std::deque<event_slot *> free_;
    std::size_t num_chunks_ = 0;
};

/// Never destroyed: threads of the runtime may complete operations until the process has ended.
event_pool &pool() {
    static auto *const only = new event_pool;
    return *only;
}

} // namespace
} // namespace diomp::rma

void *ompx_event::operator new(std::size_t nbytes) {
    DIOMP_ASSERT(nbytes == sizeof(ompx_event), "no class is derived from ompx_event");
    return diomp::rma::pool().take();
}

void ompx_event::operator delete(void *memory) noexcept { diomp::rma::pool().give_back(memory); }

diomp::status ompx_event::check(const ompx_event *event) {
    diomp::rma::event_slot const *const slot = diomp::rma::pool().find(event);
    if (slot == nullptr || !slot->is_known.load(std::memory_order_relaxed)) {
        return diomp::error(OMPX_ERR_ARG, "not an event of an operation in flight",
                            "wait for each event once, not for a copy of it too, and set events "
                            "to NULL before use");
    }
    return {};
}

void ompx_event::release_by_program() {
    diomp::rma::pool().find(this)->is_known.store(false, std::memory_order_relaxed);
    release();
}
