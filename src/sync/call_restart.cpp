// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/internal/call_restart.h"

#include "base/assert.h"
#include "messaging/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::sync {

void call_restart::begin_call(call_rounds made) {
    is_in_call_ = true;
    has_several_rounds_ = made == call_rounds::several;
    is_counted_ = must_restart_ = has_failed_ = false;
}

void call_restart::end_call() {
    if (!is_counted_ && has_failed_) [[unlikely]] { // before its first round
        ++num_calls_;
        is_counted_ = true;
    }
    bool const gives_up = is_counted_ && (must_restart_ || (has_several_rounds_ && has_failed_));
    is_in_call_ = has_several_rounds_ = is_counted_ = false;
    if (gives_up) [[unlikely]] {
        give_up();
    }
}

status call_restart::begin_round(const call_signature &call, std::uint64_t &epoch) {
    if (is_counted_ && must_restart_) {
        return given_up_error(epoch);
    }
    if (!is_counted_) {
        ++num_calls_;
        is_counted_ = is_in_call_;
    }
    if (!is_restarting_) [[likely]] {
        return {};
    }
    status done = restart(call, epoch);
    if (!done) {
        note_failure(done.failure().code());
        leave_step();
    }
    return done;
}

status call_restart::restart(const call_signature &call, std::uint64_t &epoch) {
    std::uint64_t const from = areas_.own().restart.load(std::memory_order_relaxed);
    std::size_t next = 0;
    bool is_late = false;
    DIOMP_TRY(engine_.wait(
        [&] {
            for (; next < areas_.size() && !is_late; ++next) {
                std::uint64_t const theirs = areas_[next].restart.load(std::memory_order_acquire);
                if (theirs < from) {
                    break;
                }
                is_late = theirs > from;
            }
            return is_late || next == areas_.size() || is_given_up(from);
        },
        [&] {
            return fmt::format("waiting for rank {} in {}, after calls that were given up",
                               areas_.members()[std::min(next, areas_.size() - 1)].value(),
                               describe(call));
        }));
    if (is_late || next < areas_.size()) {
        return given_up_error(from, "waiting in " + describe(call));
    }
    epoch = from;
    is_restarting_ = false;
    ++num_restarts_;
    return {};
}

error call_restart::given_up_error(std::uint64_t epoch) {
    bool have_arrived = true;
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        have_arrived = have_arrived && areas_[member].has_arrived(epoch);
    }
    return given_up_error(epoch, have_arrived ? "waiting in " +
                                                    describe(areas_.own().flag_slot_of(epoch).call)
                                              : areas_.describe_missing(epoch));
}

error call_restart::given_up_error(std::uint64_t epoch, const std::string &what) {
    std::size_t member = 0;
    while (member + 1 < areas_.size() &&
           areas_[member].restart.load(std::memory_order_acquire) <= epoch) {
        ++member;
    }
    bool const is_lost =
        areas_[member].restart_code.load(std::memory_order_relaxed) == OMPX_ERR_PEER;
    code_ = is_lost ? OMPX_ERR_PEER : OMPX_ERR_TIMEOUT;
    leave_step();
    std::string text =
        fmt::format("rank {} has given up {}", areas_.members()[member].value(), what);
    return is_lost
               ? error(OMPX_ERR_PEER, text + ": it has lost a rank")
               : error(OMPX_ERR_TIMEOUT, std::move(text),
                       "raise DIOMP_TIMEOUT if the ranks are only slow; the group stays usable");
}

void call_restart::leave_step() {
    must_restart_ = true;
    if (!is_in_call_) {
        give_up();
    }
}

void call_restart::give_up() {
    constexpr unsigned max_round_bits = 24; // of the rounds of a call
    std::uint64_t const from = num_calls_ << max_round_bits;
    is_restarting_ = true;
    areas_.own().restart_code.store(code_, std::memory_order_relaxed);
    areas_.own().restart.store(from, std::memory_order_release);
    for (std::size_t member = 0; member < areas_.size(); ++member) {
        std::atomic<std::uint64_t> &latest = areas_[member].latest_restart;
        std::uint64_t known = latest.load(std::memory_order_relaxed);
        while (known < from && !latest.compare_exchange_weak(known, from)) {
        }
    }
    wake_members(engine_, areas_);
}

void wake_members(messaging::engine &engine, const barrier_areas &areas) {
    for (world_rank const member : areas.members()) {
        engine.wake_for_store(member);
    }
}

} // namespace diomp::sync
