// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/current_call.h"

#include "group/protocol_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::group {

void current_call::begin(const sync::call_signature &made) {
    ++number_;
    signature_ = made;
    state_ = {};
    state_.call = made;
    state_.first = static_cast<std::uint32_t>(layout_.self());
    failure_.reset();
    peer_diverged_ = false;
    is_given_up_ = false;
    queue_.begin_call(number_, state_);
    if (logs_protocol()) [[unlikely]] {
        log_protocol("call {}: {} by {} members on {} nodes; this is member {}{}", number_,
                     sync::describe(made), layout_.members.size(), layout_.num_nodes(),
                     layout_.self(), is_call_leader() ? ", the call leader of its node" : "");
    }
    publish_awaited(-1);
}

std::size_t current_call::call_leader_of(std::size_t node) const {
    std::uint16_t const root = signature_.root;
    bool const has_root_there = root < layout_.members.size() && layout_.node(root) == node;
    return has_root_there ? root : layout_.leaders[node];
}

std::size_t current_call::call_leader_index() const {
    auto const found =
        std::ranges::lower_bound(layout_.local_members, call_leader_of(layout_.own_node));
    return static_cast<std::size_t>(found - layout_.local_members.begin());
}

void current_call::raise_veto(std::uint64_t detail) {
    state_.veto_member = static_cast<std::uint32_t>(layout_.self());
    state_.veto = detail;
}

void current_call::merge(const call_state &received) {
    call_state usable = received;
    if (usable.missing != call_state::no_member &&
        layout_.node(usable.missing_member()) == layout_.own_node) {
        usable.missing =
            call_state::no_member; // the member that others gave up on has arrived since
        is_given_up_ = is_given_up_ || !sync::completes_late(signature_.what);
    }
    state_.merge(usable);
}

void current_call::adopt_failure(const call_state &published) {
    // The call ends even if the missing member is another one on this node.
    bool const is_self =
        published.missing != call_state::no_member && published.missing_member() == layout_.self();
    state_.missing = is_self ? call_state::no_member : published.missing;
    merge(published);
    is_given_up_ = is_given_up_ || (state_.is_clean() && !sync::completes_late(signature_.what));
}

void current_call::fail(std::int32_t rank, error why) {
    bool const is_lost = why.code() == OMPX_ERR_PEER;
    if (!failure_) {
        failure_ = std::move(why);
    }
    auto const found = std::ranges::find(layout_.members, world_rank{rank});
    auto const member = static_cast<std::uint32_t>(found - layout_.members.begin());
    state_.missing = std::min(state_.missing, is_lost ? member : member | call_state::late);
}

void current_call::give_up(std::uint64_t next) {
    if (state_.missing == call_state::no_member) {
        state_.missing = static_cast<std::uint32_t>(layout_.self()) | call_state::late;
    }
    queue_.update(state_, awaited_);
    number_ = std::max(number_, next - 1);
}

error current_call::missing_error() const {
    std::int32_t const rank = layout_.members[state_.missing_member()].value();
    if ((state_.missing & call_state::late) == 0) {
        return {OMPX_ERR_PEER,
                fmt::format("another rank has lost rank {}, {}", rank, describe_wait(rank))};
    }
    return {OMPX_ERR_TIMEOUT, fmt::format("another rank has given up {}", describe_wait(rank)),
            "raise DIOMP_TIMEOUT if the other ranks are only slow"};
}

status current_call::outcome() {
    if (!state_.agrees()) {
        queue_.update(state_, awaited_); // later messages of this call are not compared again
        return sync::mismatch_error(layout_.members[state_.first], state_.call,
                                    layout_.members[state_.other], state_.other_call);
    }
    if (failure_) {
        return std::move(*std::exchange(failure_, std::nullopt));
    }
    if (state_.missing != call_state::no_member) {
        return missing_error();
    }
    if (is_given_up_) {
        return error(OMPX_ERR_TIMEOUT,
                     fmt::format("other ranks have given up {}", describe(signature_)),
                     "raise DIOMP_TIMEOUT if the ranks are only slow; the group stays usable");
    }
    return {};
}

status current_call::late_mismatch() {
    auto const late = queue_.take_late_mismatch();
    if (!late) {
        return {};
    }
    const auto &[low, high] =
        std::minmax(late->first, late->second,
                    [](const call_state &a, const call_state &b) { return a.first < b.first; });
    return sync::mismatch_error(layout_.members[low.first], low.call, layout_.members[high.first],
                                high.call);
}

void current_call::publish_awaited(std::int32_t rank) {
    if (rank == awaited_) {
        return;
    }
    awaited_ = rank;
    queue_.update(state_, rank);
    own_awaited_.store(static_cast<std::uint64_t>(rank) + 1, std::memory_order_relaxed);
}

void current_call::process_report(const call_report &report) {
    call_state both = state_;
    both.merge(report.state);
    if (!both.agrees()) {
        merge(report.state);
        peer_diverged_ = true;
    } else if (report.state.missing != call_state::no_member) {
        is_given_up_ = true; // its messages of the call that have not come will not come
        peer_diverged_ = true;
    } else if (report.awaited >= 0) {
        publish_awaited(report.awaited);
    }
}

std::string current_call::describe_wait(std::int32_t awaited) const {
    return fmt::format("waiting for rank {} in {}", awaited, describe(signature_));
}

} // namespace diomp::group
