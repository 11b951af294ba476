// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/engine.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/panic.h"
#include "base/sanitizer.h"
#include "base/service_thread.h"
#include "messaging/wait_limits.h"
#include "stacks/waiting.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::messaging {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// A yielding thread reads the clock every so many yields: a yield costs a fraction of a
/// microsecond when no other thread uses the core, up to a time slice when one does.
constexpr int yields_per_clock_check = 64;
/// Polls of the network between two yields while no other thread uses the core; a yield costs twice
/// as much as a poll. Does not apply to a thread that waits beside another polling thread of its
/// rank, since the other one polls for both.
constexpr int polls_per_yield = 16;
/// A wait that has lasted this long is not on a hot path: sleep between polls.
constexpr microseconds sleep_after{5000};
constexpr microseconds min_sleep{50};
constexpr microseconds max_sleep{1000};
/// Sleeps of waits where all that can end the wait also ends the sleep. The maximum is for checks
/// of time alone: DIOMP_TIMEOUT, and reports about long waits.
constexpr microseconds min_sleep_until_event{1000};
constexpr microseconds max_sleep_until_event{250'000};
/// More time between two checks of the clock does not count: the job was suspended.
constexpr microseconds max_counted_gap{2 * max_sleep_until_event};

/// The purpose of a long wait, and the operations outstanding in the conduit.
std::string explain(transport::conduit &conduit, function_ref<std::string()> describe) {
    auto *const peers = conduit.peers();
    std::string const outstanding = peers == nullptr ? "" : peers->describe_outstanding();
    return outstanding.empty() ? describe()
                               : fmt::format("{}; outstanding: {}", describe(), outstanding);
}

/// Calls begin_polling and end_polling, and counts the polling threads.
class polling_scope {
public:
    polling_scope(transport::conduit_waits &waits, engine &engine, std::atomic<int> &num_polling,
                  transport::wait_kind what)
        : waits_(waits), engine_(engine), num_polling_(num_polling), what_(what) {
        count(1);
        waits_.begin_polling();
    }
    ~polling_scope() {
        if (is_paused_) {
            waits_.end_paused_polling(what_);
            return;
        }
        count(-1);
        while (waits_.end_polling()) {
            waits_.begin_polling();
            engine_.poll();
        }
    }
    polling_scope(const polling_scope &) = delete;
    polling_scope &operator=(const polling_scope &) = delete;

    /// Around a sleep.
    void pause() {
        is_paused_ = true;
        count(-1);
        while (waits_.pause_polling(what_, !std::exchange(has_paused_, true))) {
            waits_.resume_polling(what_);
            engine_.poll();
        }
    }
    void resume() {
        is_paused_ = false;
        count(1);
        waits_.resume_polling(what_);
    }

private:
    void count(int change) {
        [[maybe_unused]] int const before =
            num_polling_.fetch_add(change, std::memory_order_relaxed);
        DIOMP_ASSERT(before + change >= 0, "a thread leaves after it has entered");
    }

    transport::conduit_waits &waits_;
    engine &engine_;
    std::atomic<int> &num_polling_;
    transport::wait_kind what_;
    bool is_paused_ = false;
    bool has_paused_ = false;
};

} // namespace

engine::engine(transport::conduit &conduit, const engine_options &options)
    : conduit_(conduit), options_(options), core_(options.spin_count, options.is_oversubscribed),
      store_sleepers_(conduit.waits().store_sleepers()), outbox_(conduit) {
    auto *const longs = conduit_.am_long();
    if (longs == nullptr) {
        return;
    }
    longs->set_am_long_handler(
        [this](const transport::message &incoming) {
            tsan_acquire_external();
            handlers_[incoming.handler].function(incoming);
        },
        [this](const transport::message &incoming, std::size_t nbytes) {
            transport::recv_buffer_callback const &find_buffer =
                handlers_[incoming.handler].find_buffer;
            return find_buffer ? find_buffer(incoming, nbytes) : nullptr;
        });
}

engine::~engine() {
    stop();
    if (auto *const longs = conduit_.am_long(); longs != nullptr) {
        longs->set_am_long_handler({}, {});
    }
}

transport::handler_id engine::add_handler(handler function,
                                          transport::recv_buffer_callback recv_buffer) {
    DIOMP_ASSERT(handlers_.size() <= UINT16_MAX, "handler_id has 16 bits");
    handlers_.push_back({std::move(function), std::move(recv_buffer)});
    return static_cast<transport::handler_id>(handlers_.size() - 1);
}

void engine::start() {
    if (!options_.progress_thread) {
        return;
    }
    thread_ = start_service_thread("diomp-progress", [this] { run_progress_thread(); });
}

void engine::stop() {
    stopping_.store(true, std::memory_order_release);
    if (thread_.joinable()) {
        conduit_.waits().wake();
        thread_.join();
    }
}

void engine::send(world_rank peer, transport::handler_id handler,
                  std::span<const std::byte> payload) {
    if (payload.size() > conduit_.max_message_bytes(peer)) {
        panic("active message exceeds the conduit's maximum payload");
    }
    tsan_release_external();
    if (outbox_.send_or_keep(peer, handler, payload)) [[unlikely]] {
        conduit_.waits().wake();
    }
}

result<bool> engine::send_long(world_rank peer, transport::handler_id handler,
                               std::span<const std::byte> payload, std::span<const std::byte> data,
                               transport::completion &source_free) {
    auto *const network = conduit_.am_long(peer);
    if (network == nullptr) {
        return false;
    }
    tsan_release_external();
    return network->send_long(peer, handler, payload, data, source_free);
}

result<bool> engine::put_with_message(world_rank peer, std::uint64_t remote_address,
                                      std::span<const std::byte> source,
                                      transport::handler_id handler,
                                      std::span<const std::byte> payload,
                                      transport::completion &source_free) {
    auto *const network = conduit_.am_long(peer);
    if (network == nullptr) {
        return false;
    }
    tsan_release_external();
    return network->put_with_message(peer, remote_address, source, handler, payload, source_free);
}

void engine::wake_sleepers(world_rank peer) { conduit_.waits().wake_for_store(peer); }

void engine::wake_waiters() { conduit_.waits().wake_idle_waiters(); }

bool engine::poll() {
    int const handled = conduit_.poll([this](const transport::message &incoming) {
        tsan_acquire_external();
        DIOMP_ASSERT(incoming.handler < handlers_.size(), "ranks add the same handlers");
        handlers_[incoming.handler].function(incoming);
    });
    bool moved = false;
    if (outbox_.has_messages()) [[unlikely]] {
        moved = outbox_.flush();
    }
    if (callbacks_.has_any()) [[unlikely]] {
        moved = callbacks_.run() || moved;
    }
    if (handled == 0 && !moved) {
        return false;
    }
    // Another thread may sleep until what has just happened. It counts itself before it checks its
    // condition for the last time.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (num_waiting_.sleeping.load(std::memory_order_relaxed) > 0) [[unlikely]] {
        wake_waiters();
    }
    return true;
}

void engine::on_completion(std::shared_ptr<transport::completion> count,
                           std::function<void()> then) {
    call_when([count = std::move(count)] { return count->is_done(); }, std::move(then));
}

void engine::call_when(std::function<bool()> is_over, std::function<void()> then) {
    callbacks_.add(std::move(is_over), std::move(then));
    // The transfer may be completed by a thread that does not poll afterwards, so the progress
    // thread must check from time to time.
    conduit_.waits().wake();
}

void engine::run_progress_thread() {
    for (;;) {
        std::uint32_t const seen = conduit_.waits().activity();
        if (stopping_.load(std::memory_order_acquire)) {
            return;
        }
        if (poll()) {
            continue;
        }
        // If messages wait for space at a peer, or transfers may be completed by another thread, no
        // doorbell follows: check again soon.
        bool const pending = outbox_.has_messages() || callbacks_.has_any();
        conduit_.waits().sleep(seen, pending ? microseconds{100} : microseconds{1000000});
    }
}

void wait_failure::set(std::string reason) {
    {
        std::lock_guard const guard(mutex_);
        reason_ = std::move(reason);
    }
    is_set_.store(true, std::memory_order_release);
    if (then_) {
        then_();
    }
}

std::string wait_failure::reason() const {
    std::lock_guard const guard(mutex_);
    return reason_;
}

void engine::fail_waits(std::string reason) {
    failure_.set(std::move(reason));
    conduit_.waits().wake();
}

status engine::wait_slowly(function_ref<bool()> ready, function_ref<std::string()> describe,
                           int spins, transport::wait_kind what) {
    polling_scope polling(conduit_.waits(), *this, num_waiting_.polling, what);
    stacks::waiting here;
    auto const begin = clock::now();
    auto counted_from = inherited_limit::begin_of_wait(begin, options_.timeout_s);
    auto last_check = begin;
    auto quiet_since = begin;
    bool busy = false; // messages arrived since the last clock check
    bool warned = options_.warn_after_s <= 0;
    bool has_yielded = false;
    bool sleeps = core_.should_sleep();
    bool has_slept = false;
    bool const is_oversubscribed = core_.is_contended();
    // Without a progress thread, messages of the node end no sleep of a thread that waits for the
    // network.
    bool const events_end_sleeps = what == transport::wait_kind::handler && thread_.joinable() &&
                                   conduit_.waits().wakes_idle_waits();
    microseconds const first_sleep = events_end_sleeps ? min_sleep_until_event : min_sleep;
    microseconds idle_wait = first_sleep;
    if (sleeps) {
        spins += core_.trial_polls();
    }
    for (int round = 1;; ++round) {
        if (ready()) {
            if (round > 1 && round <= spins) {
                core_.note_success();
            }
            return {};
        }
        // A thread that serves messages all the time also checks the clock: its own condition may
        // never come true.
        if (poll()) {
            busy = true;
        } else if (round <= spins || (!is_oversubscribed &&
                                      num_waiting_.polling.load(std::memory_order_relaxed) <= 1 &&
                                      round % polls_per_yield != 0)) {
            cpu_relax();
            continue;
        } else if (!sleeps) {
            sleeps = core_.yield(!std::exchange(has_yielded, true));
        }
        if (round % yields_per_clock_check != 0 && !sleeps) {
            continue;
        }
        if (here.is_requested()) [[unlikely]] {
            here.describe_to_requester(explain(conduit_, describe));
        }
        auto const now = clock::now();
        counted_from += std::max(now - last_check - max_counted_gap, clock::duration::zero());
        last_check = now;
        auto const waited = std::chrono::duration_cast<microseconds>(now - counted_from);
        double const waited_s = static_cast<double>(waited.count()) * 1e-6;
        if (failure_.is_set()) {
            return error(OMPX_ERR_PEER, failure_.reason() + ", while " + describe());
        }
        if (options_.timeout_s > 0 && waited_s > options_.timeout_s) {
            if (ready()) { // since the round began
                return {};
            }
            inherited_limit::note_timeout(now);
            return error(OMPX_ERR_TIMEOUT,
                         fmt::format("timed out after {:g} s {}", options_.timeout_s,
                                     explain(conduit_, describe)),
                         "raise DIOMP_TIMEOUT if the other ranks are only slow");
        }
        if (!warned && waited_s > options_.warn_after_s) {
            warned = true;
            log(log_level::warn, "has been {} for {:.{}f} s", explain(conduit_, describe), waited_s,
                waited_s < 1 ? 2 : 0);
        }
        // A thread that serves messages while it waits is on a hot path of another rank.
        if (std::exchange(busy, false)) {
            quiet_since = now;
            idle_wait = first_sleep;
        }
        if (sleeps || now - quiet_since > sleep_after) {
            if (sleeps && !std::exchange(has_slept, true)) {
                core_.note_sleep();
            }
            std::uint32_t const seen = conduit_.waits().activity();
            polling.pause();
            // ready() is not called again after it has returned true: it may have consumed what it
            // found.
            num_waiting_.sleeping.fetch_add(1, std::memory_order_seq_cst);
            bool const is_ready = conduit_.waits().idle_wait(what, seen, idle_wait, ready);
            num_waiting_.sleeping.fetch_sub(1, std::memory_order_relaxed);
            if (is_ready) {
                return {};
            }
            polling.resume();
            // Do not sleep much beyond the end of a short wait, unless its end ends the sleep.
            idle_wait = events_end_sleeps
                            ? std::min(idle_wait * 4, max_sleep_until_event)
                            : std::clamp(waited / 8, min_sleep, std::min(idle_wait * 2, max_sleep));
            round = std::max(spins, yields_per_clock_check) / yields_per_clock_check *
                        yields_per_clock_check +
                    yields_per_clock_check - 1; // one yield, then check the clock again
        }
    }
}

} // namespace diomp::messaging
