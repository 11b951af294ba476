// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/engine.h"

#include "base/log.h"
#include "base/panic.h"
#include "base/sanitizer.h"
#include "base/service_thread.h"
#include "stacks/waiting.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace diomp::conduit {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// How often a yielding thread looks at the clock: a yield costs a fraction of a microsecond when
/// nobody else wants the core, up to a time slice when somebody does.
constexpr int yields_per_look = 64;
/// A yield costs twice as much as a look at the network: while nobody else wants the core, so many
/// looks come between two. Not of threads that wait beside another one of their rank, which looks
/// for them as well.
constexpr int polls_per_yield = 16;
/// A wait that has lasted this long is no hot path any more: sleep between looks.
constexpr microseconds nap_after{5000};
constexpr microseconds first_nap{50};
constexpr microseconds longest_nap{1000};
/// Keeps the promise of begin_polling, and counts who has given it.
class polling_scope {
public:
    polling_scope(conduit &conduit, engine &engine, std::atomic<int> &num_polling)
        : conduit_(conduit), engine_(engine), num_polling_(num_polling) {
        enter();
    }
    ~polling_scope() { leave(); }
    polling_scope(const polling_scope &) = delete;
    polling_scope &operator=(const polling_scope &) = delete;

    void leave() {
        if (!std::exchange(left_, true)) {
            num_polling_.fetch_sub(1, std::memory_order_relaxed);
            while (conduit_.end_polling()) {
                conduit_.begin_polling();
                engine_.poll();
            }
        }
    }
    void enter() {
        left_ = false;
        num_polling_.fetch_add(1, std::memory_order_relaxed);
        conduit_.begin_polling();
    }

private:
    conduit &conduit_;
    engine &engine_;
    std::atomic<int> &num_polling_;
    bool left_ = true;
};

} // namespace

engine::engine(conduit &conduit, const engine_options &options)
    : conduit_(conduit), options_(options), cores_(options.spin_count, options.is_crowded),
      store_sleepers_(conduit.store_sleepers()) {
    conduit_.receive_bulk_with(
        [this](const message &incoming) {
            order_coming_in();
            handlers_[incoming.handler](incoming);
        },
        [this](const message &announced, std::size_t nbytes) {
            bulk_placer const &place = placers_[announced.handler];
            return place ? place(announced, nbytes) : nullptr;
        });
}

engine::~engine() {
    stop();
    conduit_.receive_bulk_with({}, {});
}

handler_id engine::add_handler(handler function, bulk_placer placer) {
    handlers_.push_back(std::move(function));
    placers_.push_back(std::move(placer));
    return static_cast<handler_id>(handlers_.size() - 1);
}

void engine::start() {
    if (!options_.progress_thread) {
        return;
    }
    thread_ = start_service_thread("diomp-progress", [this] { serve(); });
}

void engine::stop() {
    stopping_.store(true, std::memory_order_release);
    if (thread_.joinable()) {
        conduit_.wake();
        thread_.join();
    }
}

void engine::send(world_rank peer, handler_id handler, std::span<const std::byte> payload) {
    if (payload.size() > conduit_.max_message_bytes(peer)) {
        panic("active message larger than the conduit takes");
    }
    order_going_out();
    if (num_pending_.load(std::memory_order_acquire) == 0 &&
        conduit_.try_send(peer, handler, payload)) {
        return;
    }
    std::lock_guard const guard(outbox_mutex_);
    auto const waiting = outbox_.find(peer.value());
    if (waiting == outbox_.end() && conduit_.try_send(peer, handler, payload)) {
        return;
    }
    outbox_[peer.value()].push_back({handler, {payload.begin(), payload.end()}});
    num_pending_.fetch_add(1, std::memory_order_release);
    conduit_.wake();
}

bool engine::flush_outbox() {
    std::unique_lock const guard(outbox_mutex_, std::try_to_lock);
    if (!guard.owns_lock()) {
        return false;
    }
    bool moved = false;
    for (auto waiting = outbox_.begin(); waiting != outbox_.end();) {
        auto &[rank, messages] = *waiting;
        while (!messages.empty() && conduit_.try_send(world_rank{rank}, messages.front().handler,
                                                      messages.front().payload)) {
            messages.pop_front();
            num_pending_.fetch_sub(1, std::memory_order_release);
            moved = true;
        }
        waiting = messages.empty() ? outbox_.erase(waiting) : std::next(waiting);
    }
    return moved;
}

bool engine::poll() {
    int const handled = conduit_.poll([this](const message &incoming) {
        order_coming_in();
        handlers_[incoming.handler](incoming);
    });
    bool moved = false;
    if (num_pending_.load(std::memory_order_acquire) > 0) [[unlikely]] {
        moved = flush_outbox();
    }
    if (num_watched_.load(std::memory_order_acquire) > 0) [[unlikely]] {
        moved = run_finished() || moved;
    }
    return handled > 0 || moved;
}

void engine::watch(std::shared_ptr<completion> count, std::function<void()> then) {
    watch_until([count = std::move(count)] { return count->is_done(); }, std::move(then));
}

void engine::watch_until(std::function<bool()> is_over, std::function<void()> then) {
    {
        std::lock_guard const guard(watch_mutex_);
        watched_.push_back({std::move(is_over), std::move(then)});
        num_watched_.fetch_add(1, std::memory_order_release);
    }
    // Whoever completes the transfer may be a thread that does not poll afterwards: the progress
    // thread shall look from time to time.
    conduit_.wake();
}

bool engine::run_finished() {
    std::vector<watched> looked_at;
    {
        std::unique_lock const guard(watch_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return false;
        }
        looked_at.swap(watched_);
    }
    auto const first = std::partition(looked_at.begin(), looked_at.end(),
                                      [](const watched &each) { return !each.is_over(); });
    auto const num_finished = looked_at.end() - first;
    std::vector<watched> const finished(std::make_move_iterator(first),
                                        std::make_move_iterator(looked_at.end()));
    looked_at.erase(first, looked_at.end());
    {
        std::lock_guard const guard(watch_mutex_);
        watched_.insert(watched_.end(), std::make_move_iterator(looked_at.begin()),
                        std::make_move_iterator(looked_at.end()));
    }
    for (watched const &each : finished) {
        each.then();
    }
    num_watched_.fetch_sub(static_cast<int>(num_finished), std::memory_order_release);
    return num_finished > 0;
}

void engine::serve() {
    for (;;) {
        std::uint32_t const seen = conduit_.activity();
        if (stopping_.load(std::memory_order_acquire)) {
            return;
        }
        if (poll()) {
            conduit_.wake_napping();
            continue;
        }
        // With messages waiting for room at a peer, or transfers that another thread may have
        // completed, nobody will ring: look again soon.
        bool const pending = num_pending_.load(std::memory_order_acquire) > 0 ||
                             num_watched_.load(std::memory_order_acquire) > 0;
        conduit_.sleep(seen, pending ? microseconds{100} : microseconds{1000000});
    }
}

void engine::fail_waits(std::string reason) {
    {
        std::lock_guard const guard(failure_mutex_);
        failure_ = std::move(reason);
    }
    failed_.store(true, std::memory_order_release);
    conduit_.wake();
}

std::string engine::failure_reason() const {
    std::lock_guard const guard(failure_mutex_);
    return failure_;
}

std::string engine::explain(function_ref<std::string()> describe) const {
    std::string const outstanding = conduit_.describe_outstanding();
    return outstanding.empty() ? describe()
                               : fmt::format("{}; outstanding: {}", describe(), outstanding);
}

status engine::wait_slowly(function_ref<bool()> ready, function_ref<std::string()> describe,
                           int spins, awaited what) {
    polling_scope polling(conduit_, *this, num_polling_);
    stacks::waiting here;
    auto const begin = clock::now();
    auto quiet_since = begin;
    bool busy = false; // messages came since the last look at the clock
    microseconds nap = first_nap;
    bool warned = options_.warn_after_s <= 0;
    bool has_yielded = false;
    bool sleeps = cores_.is_to_sleep();
    bool has_slept = false;
    bool const is_crowded = cores_.is_wanted();
    if (sleeps) {
        spins += cores_.trial_polls();
    }
    for (int round = 1;; ++round) {
        if (ready()) {
            if (round > 1 && round <= spins) {
                cores_.note_success();
            }
            return {};
        }
        // Also who serves others all the time looks at the clock: what it waits for may never come.
        if (poll()) {
            busy = true;
        } else if (round <= spins ||
                   (!is_crowded && polls_alone() && round % polls_per_yield != 0)) {
            cpu_relax();
            continue;
        } else if (!sleeps) {
            sleeps = cores_.yield(!std::exchange(has_yielded, true));
        }
        if (round % yields_per_look != 0 && !sleeps) {
            continue;
        }
        if (here.is_asked()) [[unlikely]] {
            here.answer(explain(describe));
        }
        auto const now = clock::now();
        auto const waited = std::chrono::duration_cast<microseconds>(now - begin);
        double const waited_s = static_cast<double>(waited.count()) * 1e-6;
        if (failed_.load(std::memory_order_acquire)) {
            std::lock_guard const guard(failure_mutex_);
            return error(OMPX_ERR_PEER, failure_ + ", while " + describe());
        }
        if (options_.timeout_s > 0 && waited_s > options_.timeout_s) {
            return error(
                OMPX_ERR_TIMEOUT,
                fmt::format("timed out after {:g} s {}", options_.timeout_s, explain(describe)),
                "raise DIOMP_TIMEOUT if the other ranks are only slow");
        }
        if (!warned && waited_s > options_.warn_after_s) {
            warned = true;
            log(log_level::warn, "has been {} for {:.0f} s", explain(describe), waited_s);
        }
        // Whoever serves others while it waits is on somebody's hot path.
        if (std::exchange(busy, false)) {
            quiet_since = now;
            nap = first_nap;
        }
        if (sleeps || now - quiet_since > nap_after) {
            if (sleeps && !std::exchange(has_slept, true)) {
                cores_.note_sleep();
            }
            std::uint32_t const seen = conduit_.activity();
            polling.leave();
            // A true answer is the last one: whoever took something to give it cannot repeat it.
            if (conduit_.nap(what, seen, nap, ready)) {
                return {};
            }
            polling.enter();
            // Not much beyond the end of a short wait.
            nap = std::clamp(waited / 8, first_nap, std::min(nap * 2, longest_nap));
            round = std::max(spins, yields_per_look) / yields_per_look * yields_per_look +
                    yields_per_look - 1; // one yield, then look at the clock again
        }
    }
}

} // namespace diomp::conduit
