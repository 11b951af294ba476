// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Letters of a bridge, and its waits: for letters and for posts, with the search for who is to
// blame.
#include "base/sanitizer.h"
#include "conduit/flight.h"
#include "group/bridge.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace diomp::group {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Tells when a wait has become long enough to ask what is wrong, and then less and less often.
class patience {
public:
    bool is_over() {
        if (++looks_ % looks_per_glance != 0) {
            return false;
        }
        auto const now = clock::now();
        if (looks_ == looks_per_glance) {
            next_ = now + pause_;
        }
        if (now < next_) {
            return false;
        }
        pause_ = std::min(pause_ * 2, milliseconds{160});
        next_ = now + pause_;
        return true;
    }

private:
    static constexpr unsigned looks_per_glance = 16; // a look at the clock costs 20 ns
    unsigned looks_ = 0;
    milliseconds pause_{20};
    clock::time_point next_;
};

} // namespace

void bridge::give_up_on(std::int32_t rank, error why) {
    if (!failure_) {
        failure_ = std::move(why);
    }
    auto const found = std::ranges::find(members_, world_rank{rank});
    state_.missing = std::min(state_.missing, static_cast<std::uint32_t>(found - members_.begin()));
}

void bridge::show_awaited(std::int32_t rank) {
    if (rank == shown_) {
        return;
    }
    shown_ = rank;
    inbox_.update(state_, rank);
    here_.block_of(layout_.own_place)
        .awaited_rank.store(static_cast<std::uint64_t>(rank) + 1, std::memory_order_relaxed);
}

void bridge::learn(const call_report &answer) {
    call_state both = state_;
    both.merge(answer.state);
    if (!both.agrees()) {
        merge(answer.state);
        broken_ = true;
    } else if (answer.awaited >= 0) {
        show_awaited(answer.awaited);
    }
}

std::string bridge::describe_wait(std::int32_t awaited) const {
    return fmt::format("waiting for rank {} in {}", awaited, describe(made_));
}

bool bridge::await_post(std::size_t place, std::uint64_t meeting) {
    if (!waits()) {
        return false;
    }
    std::size_t const member = layout_.here[place];
    const std::atomic<std::uint64_t> &theirs = here_.block_of(place).awaited_rank;
    std::int32_t const rank = members_[member].value();
    // It may be waiting for somebody itself.
    auto const awaited = [&] {
        std::uint64_t const shown = theirs.load(std::memory_order_relaxed);
        return shown != 0 ? static_cast<std::int32_t>(shown - 1) : rank;
    };
    auto const has_come = [&] {
        return here_.lines().has_entered(group_rank{static_cast<int>(place)}, meeting);
    };
    patience patient;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_come()) {
                return true;
            }
            if (patient.is_over()) [[unlikely]] {
                show_awaited(rank);
            }
            return false;
        },
        [&] { return describe_wait(awaited()); });
    order_coming_in();
    // A speaker that gives up at the same time has more to say than that it is late.
    if (!waited && !has_come()) {
        give_up_on(awaited(), waited.take_failure());
        return false; // what is shown stays: the next one to give up wants to know
    }
    show_awaited(-1);
    return true;
}

template <typename HasCome>
void bridge::wait_for_member(std::size_t member, HasCome has_come) {
    std::int32_t const rank = members_[member].value();
    patience patient;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_come()) {
                return true;
            }
            if (patient.is_over()) [[unlikely]] {
                if (shown_ < 0) {
                    show_awaited(rank);
                }
                mailbox_.ask(group_id_, members_[member], call_);
            }
            if (auto const answer = inbox_.take_answer()) [[unlikely]] {
                learn(*answer);
            }
            return broken_;
        },
        [&] { return describe_wait(shown_ >= 0 ? shown_ : rank); });
    if (!waited && !has_come()) {
        give_up_on(shown_ >= 0 ? shown_ : rank, waited.take_failure());
    } else {
        show_awaited(-1);
    }
}

bool bridge::wait_for(receipt &place, std::size_t member) {
    auto const has_come = [&] { return place.done.load(std::memory_order_acquire); };
    wait_for_member(member, has_come);
    if (!has_come()) {
        mailbox_.withdraw(inbox_, place);
        return false;
    }
    return true;
}

void bridge::tell(std::size_t member, std::uint64_t step, std::span<const std::byte> data) {
    world_rank const to = members_[member];
    letter_tag const tag{call_, step};
    if (!mailbox::is_eager(data.size()) || takes_whole(to, data.size())) {
        outgoing_letter &letter = outgoing_->emplace_back(to, tag, true);
        auto const whole =
            mailbox_.send_whole(group_id_, to, tag, bytes_of(state_), data, letter.done);
        if (whole && whole.value()) {
            return;
        }
        outgoing_->pop_back(); // of a lost peer others will hear
    }
    mailbox_.send(group_id_, to, tag, bytes_of(state_), data);
}

bool bridge::hear(std::size_t member, std::uint64_t step, std::span<std::byte> data) {
    if (!waits()) {
        return false;
    }
    call_state heard;
    receipt place{
        .from = members_[member], .tag = {call_, step}, .head = bytes_of(heard), .body = data};
    mailbox_.expect(group_id_, inbox_, place);
    if (!wait_for(place, member)) {
        return false;
    }
    merge(heard);
    return state_.agrees() && place.total_bytes == sizeof(heard) + data.size();
}

status bridge::send_agreed(world_rank to, letter_tag tag, std::span<const std::byte> data) {
    status outcome;
    auto const is_over = [&] {
        outgoing_letter &letter = outgoing_->emplace_back(to, tag, true);
        auto sent = mailbox_.send_whole(group_id_, to, tag, {}, data, letter.done);
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

status bridge::send(std::size_t member, std::uint64_t step, std::span<const std::byte> data,
                    readiness how) {
    world_rank const to = members_[member];
    letter_tag const tag{call_, step};
    if (goes_whole(to, data.size(), how)) {
        return send_agreed(to, tag, data);
    }
    if (mailbox::is_eager(data.size())) {
        mailbox_.send(group_id_, to, tag, {}, data);
        return {};
    }
    std::optional<std::uint64_t> address;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            pump();
            address = mailbox_.take_readiness(inbox_, to, tag);
            return address.has_value();
        },
        [&] { return describe_wait(to.value()); }));
    outgoing_letter &letter = outgoing_->emplace_back(to, tag);
    auto whole = mailbox_.send_whole(group_id_, to, tag, {}, data, letter.done);
    if (!whole) {
        outgoing_->pop_back();
        return whole.take_failure();
    }
    letter.is_told = whole.value();
    if (letter.is_told) {
        return {};
    }
    if (*address == 0) {
        outgoing_->pop_back();
        mailbox_.send(group_id_, to, tag, {}, data);
        return {};
    }
    status started = engine_.transport().put(to, *address, data.data(), data.size(), letter.done);
    if (!started) {
        outgoing_->pop_back();
        return started;
    }
    return engine_.transport().flush(to, letter.done);
}

// In the order in which they were put, as they land.
void bridge::pump() {
    while (!outgoing_->empty() && outgoing_->front().done.is_done()) {
        outgoing_letter const &sent = outgoing_->front();
        status outcome =
            conduit::outcome_of(sent.done, engine_, [&] { return describe_wait(sent.to.value()); });
        if (!outcome && !lost_letter_) {
            lost_letter_ = outcome.take_failure();
        } else if (outcome && !sent.is_told) {
            mailbox_.tell_landed(group_id_, sent.to, sent.tag);
        }
        outgoing_->pop_front();
    }
}

status bridge::finish_sends() {
    pump();
    if (!outgoing_->empty()) {
        DIOMP_TRY(engine_.wait_for_network(
            [this] {
                pump();
                return outgoing_->empty();
            },
            [this] { return describe_wait(outgoing_->front().to.value()); }));
    }
    if (lost_letter_) {
        return std::move(*std::exchange(lost_letter_, std::nullopt));
    }
    return {};
}

void bridge::settle_sends() {
    std::int32_t const to =
        outgoing_->empty() ? members_[self_].value() : outgoing_->front().to.value();
    if (status sent = finish_sends(); !sent) {
        give_up_on(to, sent.take_failure());
    }
}

void bridge::expect(receipt &place, std::size_t member, std::uint64_t step,
                    std::span<std::byte> data, readiness how) {
    place.from = members_[member];
    place.tag = {call_, step};
    place.body = data;
    mailbox_.expect(group_id_, inbox_, place, !goes_whole(place.from, data.size(), how));
}

status bridge::await(receipt &place) {
    status waited = engine_.wait_for_network(
        [&] {
            pump();
            return place.done.load(std::memory_order_acquire);
        },
        [&] { return describe_wait(place.from.value()); });
    if (waited) {
        mailbox_.collect(place);
    } else {
        mailbox_.withdraw(inbox_, place);
    }
    return waited;
}

bool bridge::hear_unless_refused(receipt &place, std::size_t member, std::uint64_t refusal) {
    if (!waits()) {
        return false;
    }
    call_state heard;
    receipt refused{
        .from = members_[member], .tag = {call_, refusal}, .head = bytes_of(heard), .body = {}};
    mailbox_.expect(group_id_, inbox_, refused);
    auto const has_come = [](const receipt &each) {
        return each.done.load(std::memory_order_acquire);
    };
    wait_for_member(member, [&] { return has_come(place) || has_come(refused); });
    if (has_come(refused)) {
        merge(heard);
    } else {
        mailbox_.withdraw(inbox_, refused);
    }
    if (!has_come(place)) {
        return false; // still expected
    }
    mailbox_.collect(place);
    return true;
}

void bridge::withdraw(receipt &place) {
    bool const is_done = place.done.load(std::memory_order_acquire);
    if (!is_done) {
        mailbox_.withdraw(inbox_, place);
    }
    // Who disagrees sends no data.
    if (is_done || !state_.agrees()) {
        mailbox_.give_back(place);
    }
}

std::byte *bridge::scratch(std::size_t nbytes) {
    pump();
    if (!outgoing_->empty()) {
        // A call has failed while its letters are still being sent: they keep this memory.
        outgoing_->back().kept.push_back(std::exchange(scratch_, {}));
    }
    if (scratch_.size() < nbytes + cache_line_bytes) {
        scratch_.clear(); // nothing to copy
        scratch_.resize(nbytes + cache_line_bytes);
    }
    auto const address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return scratch_.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
}

} // namespace diomp::group
