// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "first_cause.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace diomp::run {

void first_cause::note_sign(rank_state &state) {
    if (state.first_sign == 0) {
        state.first_sign = ++last_sign_;
    }
}

void first_cause::note_closed(int rank) {
    if (!at(rank).is_done) {
        note_sign(at(rank));
        closed_.push_back(rank);
    }
}

void first_cause::note_done(int rank) { at(rank).is_done = true; }

void first_cause::note_loss(int rank, std::optional<int> peer) {
    rank_state &state = at(rank);
    state.has_lost = true;
    if (state.lost == no_peer) {
        state.lost = peer.value_or(no_peer);
    }
}

void first_cause::note_failure(int rank, failure what) {
    rank_state &state = at(rank);
    if (std::exchange(state.has_failed, true)) {
        return;
    }
    note_sign(state);
    bool const is_own = !state.has_lost && !what.after_timeout;
    failures_.push_back({state.first_sign, is_own, std::move(what)});
}

std::optional<int> first_cause::lost_by(int rank) const {
    auto const lost = ranks_[static_cast<std::size_t>(rank)].lost;
    return lost == no_peer ? std::nullopt : std::optional<int>(lost);
}

bool first_cause::awaits_end_before(std::uint32_t sign) const {
    return std::ranges::any_of(closed_, [this, sign](int rank) {
        auto const &state = ranks_[static_cast<std::size_t>(rank)];
        return !state.is_done && !state.has_failed && !state.has_lost && state.first_sign < sign;
    });
}

const failure *first_cause::find(cause_wait allowed_wait) const {
    const entry *own = nullptr;
    for (const entry &each : failures_) {
        if (each.is_own && (own == nullptr || each.first_sign < own->first_sign)) {
            own = &each;
        }
    }
    if (own != nullptr) {
        bool const waits = allowed_wait != cause_wait::none && awaits_end_before(own->first_sign);
        return waits ? nullptr : &own->what;
    }
    bool const waits = allowed_wait == cause_wait::reports ||
                       (allowed_wait == cause_wait::exits &&
                        awaits_end_before(std::numeric_limits<std::uint32_t>::max()));
    return failures_.empty() || waits ? nullptr : &failures_.front().what;
}

} // namespace diomp::run
