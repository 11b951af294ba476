// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/pooled_completion.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "base/thread_slot.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace diomp::messaging {

/// Pool of unused states. Not one per thread: the last fence runs at the end of the process, when
/// the thread's own variables are destroyed.
class completion_pool {
public:
    static std::unique_ptr<pooled_completion::state> take() {
        completion_pool &pool = only();
        std::unique_ptr<pooled_completion::state> mine(
            pool.own_slot().exchange(nullptr, std::memory_order_acquire));
        if (mine != nullptr) [[likely]] {
            DIOMP_ASSERT(mine->count.is_done(), "only finished completions are reused");
            return mine;
        }
        std::lock_guard const guard(pool.mutex_);
        if (pool.free_.empty()) {
            return std::make_unique<pooled_completion::state>();
        }
        auto state = std::move(pool.free_.back());
        pool.free_.pop_back();
        DIOMP_ASSERT(state->count.is_done(), "only finished completions are reused");
        return state;
    }

    static void put_back(std::unique_ptr<pooled_completion::state> state) {
        completion_pool &pool = only();
        bool const done = state->count.is_done();
        if (done) {
            state->count.failure.store(0, std::memory_order_relaxed);
            pooled_completion::state *none = nullptr;
            if (pool.own_slot().compare_exchange_strong(
                    none, state.get(), std::memory_order_release, std::memory_order_relaxed))
                [[likely]] {
                static_cast<void>(state.release());
                return;
            }
        }
        std::lock_guard const guard(pool.mutex_);
        if (done) {
            pool.free_.push_back(std::move(state));
            return;
        }
        std::erase_if(pool.abandoned_, [](const auto &each) { return each->count.is_done(); });
        pool.abandoned_.push_back(std::move(state));
    }

private:
    /// Never destroyed: the conduit may outlive static objects.
    static completion_pool &only() {
        static auto *const pool = new completion_pool;
        return *pool;
    }

    static constexpr std::size_t num_slots = 32;
    struct alignas(cache_line_bytes) slot {
        std::atomic<pooled_completion::state *> state{nullptr};
    };
    /// Slot of the calling thread, perhaps shared with other threads.
    std::atomic<pooled_completion::state *> &own_slot() {
        return slots_[thread_slot<num_slots>()].state;
    }

    /// last state of a thread, to avoid contention between threads
    std::array<slot, num_slots> slots_;
    std::mutex mutex_; ///< leaf lock over the lists below
    std::vector<std::unique_ptr<pooled_completion::state>> free_;
    std::vector<std::unique_ptr<pooled_completion::state>> abandoned_;
};

pooled_completion::pooled_completion() : state_(completion_pool::take()) {}

pooled_completion::~pooled_completion() { completion_pool::put_back(std::move(state_)); }

status failure_of(const transport::completion &count, engine &engine, const std::string &doing) {
    int const code = count.failure.load(std::memory_order_relaxed);
    std::string const reason = engine.failure().reason();
    return error(static_cast<ompx_status>(code),
                 fmt::format("{}, while {}",
                             reason.empty() ? "the network has failed a transfer" : reason, doing));
}

} // namespace diomp::messaging
