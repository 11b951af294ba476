// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/deadlock_probe.h"

#include "base/sanitizer.h"
#include "group/internal/current_call.h"
#include "group/internal/local_group.h"
#include "group/internal/matcher.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace diomp::group {
namespace {

using std::chrono::milliseconds;

/// Expires when a wait has become long enough to request a report, then at growing intervals: of
/// thousands of ranks that wait for seconds, few may send and answer at a time.
class backoff_timer {
public:
    explicit backoff_timer(std::size_t num_members)
        : first_interval_(std::max(milliseconds{20}, milliseconds{num_members} / 2)) {}

    bool is_over() {
        auto const now = read_clock();
        if (begin_ == milliseconds{0}) {
            begin_ = now;
            next_ = now + first_interval_;
        }
        if (now < next_) {
            return false;
        }
        auto const waited = now - begin_;
        next_ = now + std::min(waited, std::max({milliseconds{160}, first_interval_, waited / 8}));
        return true;
    }

private:
    /// To some milliseconds, which costs little beside a poll.
    static milliseconds read_clock() {
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        return std::chrono::duration_cast<milliseconds>(std::chrono::seconds{now.tv_sec} +
                                                        std::chrono::nanoseconds{now.tv_nsec});
    }

    milliseconds first_interval_;
    milliseconds begin_{0};
    milliseconds next_{0};
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
    backoff_timer timer(call_.layout().members.size());
    status waited = engine_.wait_for_network(
        [&] {
            if (has_arrived() || local_.barrier().restart().is_given_up(local_.barrier().epoch())) {
                return true;
            }
            if (timer.is_over()) [[unlikely]] {
                call_.publish_awaited(rank);
            }
            return false;
        },
        [&] { return call_.describe_wait(awaited()); });
    if (waited && local_.barrier().restart().must_give_up(has_arrived(), local_.barrier().epoch()))
        [[unlikely]] {
        call_.fail(rank, local_.barrier().restart().given_up_error(local_.barrier().epoch()));
        return false;
    }
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
    backoff_timer timer(call_.layout().members.size());
    status waited = engine_.wait_for_handler(
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
