// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/deadlock_probe.h"

#include "base/sanitizer.h"
#include "group/internal/current_call.h"
#include "group/internal/local_group.h"
#include "group/internal/matcher.h"

#include <algorithm>
#include <chrono>

namespace diomp::group {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Expires when a wait has become long enough to request a report, then at growing intervals.
class backoff_timer {
public:
    bool is_over() {
        if (++polls_ % polls_per_clock_read != 0) {
            return false;
        }
        auto const now = clock::now();
        if (polls_ == polls_per_clock_read) {
            next_ = now + interval_;
        }
        if (now < next_) {
            return false;
        }
        interval_ = std::min(interval_ * 2, milliseconds{160});
        next_ = now + interval_;
        return true;
    }

private:
    static constexpr unsigned polls_per_clock_read = 16; // reading the clock costs 20 ns
    unsigned polls_ = 0;
    milliseconds interval_{20};
    clock::time_point next_;
};

} // namespace

bool deadlock_probe::wait_for_arrival(std::size_t local_index, std::uint64_t round) {
    if (!call_.can_wait()) {
        return false;
    }
    const std::atomic<std::uint64_t> &theirs = local_.block_of(local_index).awaited_rank;
    std::int32_t const rank = local_.members()[local_index].value();
    // The member may itself be waiting for another rank.
    auto const awaited = [&] {
        std::uint64_t const awaited_rank_plus_one = theirs.load(std::memory_order_relaxed);
        return awaited_rank_plus_one != 0 ? static_cast<std::int32_t>(awaited_rank_plus_one - 1)
                                          : rank;
    };
    auto const has_arrived = [&] { return local_.barrier().has_arrived(local_index, round); };
    backoff_timer timer;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_arrived()) {
                return true;
            }
            if (timer.is_over()) [[unlikely]] {
                call_.publish_awaited(rank);
            }
            return false;
        },
        [&] { return call_.describe_wait(awaited()); });
    tsan_acquire_external();
    // A call leader that gives up at the same time publishes the cause; that is more precise.
    if (!waited && !has_arrived()) {
        call_.fail(awaited(), waited.take_failure());
        return false; // call_.awaited() stays for the next rank that gives up
    }
    call_.publish_awaited(-1);
    return true;
}

void deadlock_probe::wait_for_message(std::size_t member, const recv_request &awaited,
                                      const recv_request *alternative) {
    world_rank const from = call_.layout().members[member];
    auto const has_arrived = [&] {
        return awaited.is_done() || (alternative != nullptr && alternative->is_done());
    };
    auto const cause = [&] { return call_.awaited() >= 0 ? call_.awaited() : from.value(); };
    backoff_timer timer;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_arrived()) {
                return true;
            }
            if (timer.is_over()) [[unlikely]] {
                call_.publish_awaited(cause());
                matcher_.request_report(group_id_, from, call_.number());
            }
            if (auto const report = queue_.take_report()) [[unlikely]] {
                call_.process_report(*report);
            }
            return call_.peer_diverged();
        },
        [&] { return call_.describe_wait(cause()); });
    if (!waited && !has_arrived()) {
        call_.fail(cause(), waited.take_failure());
    } else {
        call_.publish_awaited(-1);
    }
}

} // namespace diomp::group
