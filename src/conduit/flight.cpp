// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/flight.h"

#include "base/cpu.h"
#include "base/thread_place.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace diomp::conduit {

/// States between flights. Not one per thread: the last fence runs at the end of the process, when
/// the thread's own variables are gone.
class flight_pool {
public:
    static std::unique_ptr<flight::state> take() {
        flight_pool &pool = only();
        std::unique_ptr<flight::state> mine(
            pool.own_place().exchange(nullptr, std::memory_order_acquire));
        if (mine != nullptr) [[likely]] {
            return mine;
        }
        std::lock_guard const guard(pool.mutex_);
        if (pool.free_.empty()) {
            return std::make_unique<flight::state>();
        }
        auto state = std::move(pool.free_.back());
        pool.free_.pop_back();
        return state;
    }

    static void give_back(std::unique_ptr<flight::state> state) {
        flight_pool &pool = only();
        bool const done = state->count.is_done();
        if (done) {
            state->count.failure.store(0, std::memory_order_relaxed);
            flight::state *none = nullptr;
            if (pool.own_place().compare_exchange_strong(
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
        std::erase_if(pool.given_up_, [](const auto &each) { return each->count.is_done(); });
        pool.given_up_.push_back(std::move(state));
    }

private:
    /// Never destroyed: the conduit may be later than everything else.
    static flight_pool &only() {
        static auto *const pool = new flight_pool;
        return *pool;
    }

    static constexpr std::size_t num_places = 32;
    struct alignas(cache_line_bytes) place {
        std::atomic<flight::state *> state{nullptr};
    };
    /// Of the calling thread, and perhaps of some others.
    std::atomic<flight::state *> &own_place() { return places_[thread_place<num_places>()].state; }

    std::array<place, num_places> places_; ///< a thread's last state, so that threads do not meet
    std::mutex mutex_;                     ///< leaf lock over the others
    std::vector<std::unique_ptr<flight::state>> free_;
    std::vector<std::unique_ptr<flight::state>> given_up_;
};

flight::flight() : state_(flight_pool::take()) {}

flight::~flight() { flight_pool::give_back(std::move(state_)); }

status failure_of(const completion &count, const engine &engine, const std::string &doing) {
    int const code = count.failure.load(std::memory_order_relaxed);
    std::string const reason = engine.failure_reason();
    return error(static_cast<ompx_status>(code),
                 fmt::format("{}, while {}",
                             reason.empty() ? "the network gave up a transfer" : reason, doing));
}

} // namespace diomp::conduit
