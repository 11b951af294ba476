// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/stream_pool.h"

#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>

namespace diomp::device {
namespace {

error copy_of(const error &original) {
    return {original.code(), original.message(), original.remedy()};
}

} // namespace

struct ticket::state {
    explicit state(device_id on) : device(on) {}

    device_id const device;
    std::atomic<bool> done{false};
    std::optional<error> failure; ///< constant once `done` is set
};

/// Work that has been started and has not been found complete.
struct stream_pool::inflight_work {
    std::uint64_t number = 0; ///< in order of starting
    std::unique_ptr<queue> on;
    std::shared_ptr<ticket::state> state;
};

/// The queues of one device; the mutex guards all members. A queue is in exactly one state: idle,
/// busy, or held by one thread, which starts work on it or waits for it.
struct stream_pool::device_streams {
    explicit device_streams(device_id of) : device(of) {}

    device_id const device;
    std::mutex mutex;
    std::condition_variable changed; ///< a queue was released or destroyed
    std::deque<inflight_work> busy;  ///< oldest first
    std::vector<std::unique_ptr<queue>> idle;
    int queues = 0;       ///< in any state
    bool waiting = false; ///< one thread waits for old work, which is not in `busy`
    std::uint64_t last_number = 0;
    std::vector<std::shared_ptr<ticket::state>> unreported; ///< failures to report
    pool_statistics counted;

    /// Records completion. Returns a failed queue, which the caller destroys after releasing the
    /// mutex.
    std::unique_ptr<queue> finish(inflight_work of, status outcome) {
        std::unique_ptr<queue> broken;
        if (outcome) {
            idle.push_back(std::move(of.on));
        } else {
            of.state->failure = outcome.take_failure();
            unreported.push_back(of.state);
            broken = std::move(of.on);
            --queues;
            ++counted.failed;
        }
        of.state->done.store(true, std::memory_order_release);
        changed.notify_all();
        return broken;
    }

    /// Polls the `max_count` oldest entries, or only the one with state `only`. Returns failed
    /// queues.
    std::vector<std::unique_ptr<queue>> poll_oldest(std::size_t max_count,
                                                    const ticket::state *only = nullptr) {
        std::vector<std::unique_ptr<queue>> broken;
        std::size_t polled = 0;
        for (auto each = busy.begin(); each != busy.end() && polled < max_count;) {
            if (only != nullptr && each->state.get() != only) {
                ++each;
                continue;
            }
            ++polled;
            result<bool> idle_now = each->on->is_idle();
            if (idle_now && !idle_now.value()) {
                ++each;
                continue;
            }
            inflight_work complete = std::move(*each);
            each = busy.erase(each);
            auto failed =
                finish(std::move(complete), idle_now ? status() : idle_now.take_failure());
            if (failed != nullptr) {
                broken.push_back(std::move(failed));
            }
        }
        return broken;
    }

    /// Waits, without the mutex, for all work up to number `last`. The caller has checked that no
    /// other thread does.
    void wait_up_to(std::unique_lock<std::mutex> &guard, std::uint64_t last) {
        waiting = true;
        while (!busy.empty() && busy.front().number <= last) {
            inflight_work oldest = std::move(busy.front());
            busy.pop_front();
            guard.unlock();
            status outcome = oldest.on->wait();
            guard.lock();
            auto broken = finish(std::move(oldest), std::move(outcome));
            if (broken != nullptr) {
                guard.unlock();
                broken.reset();
                guard.lock();
            }
        }
        waiting = false;
        changed.notify_all();
    }

    std::optional<error> take_failure() {
        if (unreported.empty()) {
            return {};
        }
        error first = copy_of(*unreported.front()->failure);
        unreported.erase(unreported.begin());
        return first;
    }
};

namespace {
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
} // namespace

stream_pool::stream_pool(backend &of, options chosen)
    : backend_(of), options_{.max_active = std::max(chosen.max_active, 1)} {
    for (int i = 0; i < of.num_devices(); ++i) {
        devices_.push_back(std::make_unique<device_streams>(device_id(i)));
    }
}

stream_pool::~stream_pool() {
    for (status outcome = drain(); !outcome; outcome = drain()) {
        log(log_level::warn, "a copy failed without being waited for: {}",
            outcome.failure().message());
    }
}

result<std::unique_ptr<queue>> stream_pool::acquire(device_streams &on) {
    std::vector<std::unique_ptr<queue>> broken; // outlives the guard
    std::unique_lock guard(on.mutex);
    while (true) {
        bool const full = on.queues >= options_.max_active;
        if (on.idle.empty()) {
            // A query costs driver time: the oldest entry is the most likely to be complete, and
            // the others matter only if no more queues can be created.
            std::ranges::move(on.poll_oldest(full ? no_limit : 1), std::back_inserter(broken));
        }
        if (!on.idle.empty()) {
            std::unique_ptr<queue> found = std::move(on.idle.back());
            on.idle.pop_back();
            ++on.counted.reused;
            return found;
        }
        if (on.queues < options_.max_active) {
            break;
        }
        if (on.waiting || on.busy.empty()) {
            on.changed.wait(guard); // until the waiting thread finishes, or a queue changes state
        } else {
            ++on.counted.half_synchronisations;
            on.wait_up_to(guard, on.busy[(on.busy.size() - 1) / 2].number);
        }
    }
    ++on.queues; // before the mutex is released, so that the limit holds
    guard.unlock();
    auto made = backend_.make_queue(on.device);
    guard.lock();
    if (made) {
        ++on.counted.created;
    } else {
        --on.queues;
        on.changed.notify_all();
    }
    return made;
}

result<ticket> stream_pool::copy(device_id device, void *dst, const void *src, std::size_t nbytes) {
    return start(device, [=](queue &on) { return on.copy(dst, src, nbytes); });
}

result<ticket> stream_pool::start(device_id device, function_ref<status(queue &)> work) {
    DIOMP_TRY(check_device(backend_, device));
    device_streams &on = *devices_[device.index()];
    auto acquired = acquire(on);
    if (!acquired) {
        return acquired.take_failure();
    }
    std::unique_ptr<queue> with = acquired.take();
    status started = work(*with);
    if (!started) {
        static_cast<void>(with->wait()); // a part of it may be in flight
        with.reset();
        std::lock_guard const guard(on.mutex);
        --on.queues;
        ++on.counted.failed;
        on.changed.notify_all();
        return started.take_failure();
    }
    auto state = std::make_shared<ticket::state>(device);
    std::lock_guard const guard(on.mutex);
    on.busy.push_back({++on.last_number, std::move(with), state});
    on.changed.notify_all();
    return ticket(std::move(state));
}

result<bool> stream_pool::is_done(const ticket &of) {
    ticket::state *const state = of.state_.get();
    if (state == nullptr) {
        return true;
    }
    if (!state->done.load(std::memory_order_acquire)) {
        device_streams &on = *devices_[state->device.index()];
        std::vector<std::unique_ptr<queue>> broken; // outlives the guard
        std::lock_guard const guard(on.mutex);
        broken = on.poll_oldest(1, state);
    }
    if (!state->done.load(std::memory_order_acquire)) {
        return false;
    }
    if (!state->failure) {
        return true;
    }
    device_streams &on = *devices_[state->device.index()];
    std::lock_guard const guard(on.mutex);
    std::erase_if(on.unreported, [&](auto const &each) { return each.get() == state; });
    return copy_of(*state->failure);
}

result<bool> stream_pool::poll() {
    bool nothing = true;
    std::optional<error> failure;
    for (auto const &on : devices_) {
        std::vector<std::unique_ptr<queue>> broken; // outlives the guard
        std::lock_guard const guard(on->mutex);
        broken = on->poll_oldest(no_limit);
        nothing = nothing && on->busy.empty() && !on->waiting;
        if (!failure) {
            failure = on->take_failure();
        }
    }
    if (failure) {
        return std::move(*failure);
    }
    return nothing;
}

status stream_pool::drain() {
    for (auto const &on : devices_) {
        std::unique_lock guard(on->mutex);
        std::uint64_t const last = on->last_number;
        on->changed.wait(guard, [&] { return !on->waiting; });
        on->wait_up_to(guard, last);
    }
    for (auto const &on : devices_) {
        std::lock_guard const guard(on->mutex);
        if (auto failure = on->take_failure()) {
            return std::move(*failure);
        }
    }
    return {};
}

stream_pool::pool_statistics stream_pool::counted() const {
    pool_statistics sum;
    for (auto const &on : devices_) {
        std::lock_guard const guard(on->mutex);
        sum.created += on->counted.created;
        sum.reused += on->counted.reused;
        sum.half_synchronisations += on->counted.half_synchronisations;
        sum.failed += on->counted.failed;
    }
    return sum;
}

} // namespace diomp::device
