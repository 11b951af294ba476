// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of internode_comm, and its waits for messages and for arrivals, including the search for
// the rank that causes a long wait.
#include "base/sanitizer.h"
#include "group/internal/internode.h"
#include "messaging/pooled_completion.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

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

void internode_comm::fail_call(std::int32_t rank, error why) {
    if (!failure_) {
        failure_ = std::move(why);
    }
    auto const found = std::ranges::find(members_, world_rank{rank});
    state_.missing = std::min(state_.missing, static_cast<std::uint32_t>(found - members_.begin()));
}

void internode_comm::publish_awaited(std::int32_t rank) {
    if (rank == published_awaited_) {
        return;
    }
    published_awaited_ = rank;
    match_queue_.update(state_, rank);
    local_.block_of(layout_.own_local_index)
        .awaited_rank.store(static_cast<std::uint64_t>(rank) + 1, std::memory_order_relaxed);
}

void internode_comm::process_report(const call_report &report) {
    call_state both = state_;
    both.merge(report.state);
    if (!both.agrees()) {
        merge(report.state);
        peer_diverged_ = true;
    } else if (report.awaited >= 0) {
        publish_awaited(report.awaited);
    }
}

std::string internode_comm::describe_wait(std::int32_t awaited) const {
    return fmt::format("waiting for rank {} in {}", awaited, describe(own_call_));
}

bool internode_comm::wait_for_arrival(std::size_t local_index, std::uint64_t round) {
    if (!can_wait()) {
        return false;
    }
    std::size_t const member = layout_.local_members[local_index];
    const std::atomic<std::uint64_t> &theirs = local_.block_of(local_index).awaited_rank;
    std::int32_t const rank = members_[member].value();
    // The member may itself be waiting for another rank.
    auto const awaited = [&] {
        std::uint64_t const awaited_rank_plus_one = theirs.load(std::memory_order_relaxed);
        return awaited_rank_plus_one != 0 ? static_cast<std::int32_t>(awaited_rank_plus_one - 1)
                                          : rank;
    };
    auto const has_arrived = [&] {
        return local_.barrier().has_arrived(group_rank{static_cast<int>(local_index)}, round);
    };
    backoff_timer timer;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_arrived()) {
                return true;
            }
            if (timer.is_over()) [[unlikely]] {
                publish_awaited(rank);
            }
            return false;
        },
        [&] { return describe_wait(awaited()); });
    tsan_acquire_external();
    // A call leader that gives up at the same time publishes the cause; that is more precise.
    if (!waited && !has_arrived()) {
        fail_call(awaited(), waited.take_failure());
        return false; // published_awaited_ stays for the next rank that gives up
    }
    publish_awaited(-1);
    return true;
}

template <typename HasArrived>
void internode_comm::wait_for_member(std::size_t member, HasArrived has_arrived) {
    std::int32_t const rank = members_[member].value();
    backoff_timer timer;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_arrived()) {
                return true;
            }
            if (timer.is_over()) [[unlikely]] {
                if (published_awaited_ < 0) {
                    publish_awaited(rank);
                }
                matcher_.request_report(group_id_, members_[member], call_);
            }
            if (auto const report = match_queue_.take_report()) [[unlikely]] {
                process_report(*report);
            }
            return peer_diverged_;
        },
        [&] { return describe_wait(published_awaited_ >= 0 ? published_awaited_ : rank); });
    if (!waited && !has_arrived()) {
        fail_call(published_awaited_ >= 0 ? published_awaited_ : rank, waited.take_failure());
    } else {
        publish_awaited(-1);
    }
}

bool internode_comm::wait_received_or_fail(recv_request &request, std::size_t member) {
    auto const has_arrived = [&] { return request.done.load(std::memory_order_acquire); };
    wait_for_member(member, has_arrived);
    if (!has_arrived()) {
        matcher_.cancel(match_queue_, request);
        return false;
    }
    return true;
}

void internode_comm::send_with_state(std::size_t member, std::uint64_t step,
                                     std::span<const std::byte> data) {
    world_rank const to = members_[member];
    message_tag const tag{call_, step};
    if (!matcher::is_eager(data.size()) || fits_am_long(to, data.size())) {
        outgoing_message &message = outgoing_->emplace_back(to, tag, true);
        auto const as_am_long =
            matcher_.send_am_long(group_id_, to, tag, bytes_of(state_), data, message.done);
        if (as_am_long && as_am_long.value()) {
            return;
        }
        outgoing_->pop_back(); // a lost peer is reported by other calls
    }
    matcher_.send(group_id_, to, tag, bytes_of(state_), data);
}

bool internode_comm::receive_with_state(std::size_t member, std::uint64_t step,
                                        std::span<std::byte> data) {
    if (!can_wait()) {
        return false;
    }
    call_state received;
    recv_request request{
        .from = members_[member], .tag = {call_, step}, .head = bytes_of(received), .body = data};
    matcher_.post_recv(group_id_, match_queue_, request);
    if (!wait_received_or_fail(request, member)) {
        return false;
    }
    merge(received);
    return state_.agrees() && request.total_bytes == sizeof(received) + data.size();
}

status internode_comm::send_without_rtr(world_rank to, message_tag tag,
                                        std::span<const std::byte> data) {
    status outcome;
    auto const is_over = [&] {
        outgoing_message &message = outgoing_->emplace_back(to, tag, true);
        auto sent = matcher_.send_am_long(group_id_, to, tag, {}, data, message.done);
        if (sent.ok() && sent.value()) {
            return true;
        }
        outgoing_->pop_back();
        if (!sent) {
            outcome = sent.take_failure();
        }
        return !outcome.ok();
    };
    if (!is_over()) {
        DIOMP_TRY(engine_.wait_for_network(is_over, [&] { return describe_wait(to.value()); }));
    }
    return outcome;
}

status internode_comm::send(std::size_t member, std::uint64_t step, std::span<const std::byte> data,
                            rtr_mode rtr) {
    world_rank const to = members_[member];
    message_tag const tag{call_, step};
    if (uses_am_long(to, data.size(), rtr)) {
        return send_without_rtr(to, tag, data);
    }
    if (matcher::is_eager(data.size())) {
        matcher_.send(group_id_, to, tag, {}, data);
        return {};
    }
    std::optional<std::uint64_t> address;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            progress_sends();
            address = matcher_.take_rtr(match_queue_, to, tag);
            return address.has_value();
        },
        [&] { return describe_wait(to.value()); }));
    outgoing_message &message = outgoing_->emplace_back(to, tag);
    auto as_am_long = matcher_.send_am_long(group_id_, to, tag, {}, data, message.done);
    if (!as_am_long) {
        outgoing_->pop_back();
        return as_am_long.take_failure();
    }
    message.implies_fin = as_am_long.value();
    if (message.implies_fin) {
        return {};
    }
    if (*address == 0) {
        outgoing_->pop_back();
        matcher_.send(group_id_, to, tag, {}, data);
        return {};
    }
    status started = engine_.transport().put(to, *address, data.data(), data.size(), message.done);
    if (!started) {
        outgoing_->pop_back();
        return started;
    }
    return engine_.transport().flush(to, message.done);
}

// Messages are completed in the order in which they were put.
void internode_comm::progress_sends() {
    while (!outgoing_->empty() && outgoing_->front().done.is_done()) {
        outgoing_message const &sent = outgoing_->front();
        status outcome = messaging::outcome_of(sent.done, engine_,
                                               [&] { return describe_wait(sent.to.value()); });
        if (!outcome && !send_failure_) {
            send_failure_ = outcome.take_failure();
        } else if (outcome && !sent.implies_fin) {
            matcher_.send_fin(group_id_, sent.to, sent.tag);
        }
        outgoing_->pop_front();
    }
}

status internode_comm::finish_sends() {
    progress_sends();
    if (!outgoing_->empty()) {
        DIOMP_TRY(engine_.wait_for_network(
            [this] {
                progress_sends();
                return outgoing_->empty();
            },
            [this] { return describe_wait(outgoing_->front().to.value()); }));
    }
    if (send_failure_) {
        return std::move(*std::exchange(send_failure_, std::nullopt));
    }
    return {};
}

void internode_comm::finish_sends_or_fail_call() {
    std::int32_t const to =
        outgoing_->empty() ? members_[self_].value() : outgoing_->front().to.value();
    if (status sent = finish_sends(); !sent) {
        fail_call(to, sent.take_failure());
    }
}

void internode_comm::post_recv(recv_request &request, std::size_t member, std::uint64_t step,
                               std::span<std::byte> data, rtr_mode rtr) {
    request.from = members_[member];
    request.tag = {call_, step};
    request.body = data;
    matcher_.post_recv(group_id_, match_queue_, request,
                       !uses_am_long(request.from, data.size(), rtr));
}

status internode_comm::wait_received(recv_request &request) {
    status waited = engine_.wait_for_network(
        [&] {
            progress_sends();
            return request.done.load(std::memory_order_acquire);
        },
        [&] { return describe_wait(request.from.value()); });
    if (waited) {
        matcher_.complete_recv(request);
    } else {
        matcher_.cancel(match_queue_, request);
    }
    return waited;
}

bool internode_comm::receive_unless_refused(recv_request &request, std::size_t member,
                                            std::uint64_t refusal) {
    if (!can_wait()) {
        return false;
    }
    call_state received;
    recv_request refused{
        .from = members_[member], .tag = {call_, refusal}, .head = bytes_of(received), .body = {}};
    matcher_.post_recv(group_id_, match_queue_, refused);
    auto const has_arrived = [](const recv_request &each) {
        return each.done.load(std::memory_order_acquire);
    };
    wait_for_member(member, [&] { return has_arrived(request) || has_arrived(refused); });
    if (has_arrived(refused)) {
        merge(received);
    } else {
        matcher_.cancel(match_queue_, refused);
    }
    if (!has_arrived(request)) {
        return false; // still posted
    }
    matcher_.complete_recv(request);
    return true;
}

void internode_comm::cancel(recv_request &request) {
    bool const is_done = request.done.load(std::memory_order_acquire);
    if (!is_done) {
        matcher_.cancel(match_queue_, request);
    }
    // A member that made another call sends no data.
    if (is_done || !state_.agrees()) {
        matcher_.return_rndv_buffer(request);
    }
}

std::byte *internode_comm::scratch(std::size_t nbytes) {
    progress_sends();
    if (!outgoing_->empty()) {
        // A call has failed while its messages are still being sent: they keep this memory.
        outgoing_->back().kept_scratch.push_back(std::exchange(scratch_, {}));
    }
    if (scratch_.size() < nbytes + cache_line_bytes) {
        scratch_.clear(); // nothing to copy
        scratch_.resize(nbytes + cache_line_bytes);
    }
    auto const address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return scratch_.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
}

} // namespace diomp::group
