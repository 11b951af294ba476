// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/internode.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::group {
namespace {

/// First word of a call leader's second arrival.
constexpr std::uint64_t outcome_ok = 0;
constexpr std::uint64_t outcome_failed = 1;

} // namespace

internode_comm::internode_comm(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                               std::span<const world_rank> members, const node_layout &layout,
                               local_group &local_members, std::size_t self)
    : engine_(engine), matcher_(messages), group_id_(group_id), members_(members), layout_(layout),
      local_(local_members), self_(self), match_queue_(messages.open(group_id)),
      outgoing_(std::make_unique<std::deque<outgoing_message>>()) {
    local_.barrier().disable_comparison();
}

internode_comm::~internode_comm() {
    if (!outgoing_->empty()) {
        // Leaked: with lost peers it is unknown when the conduit stops using the completions.
        static_cast<void>(outgoing_.release());
    }
    matcher_.close(group_id_);
}

std::size_t internode_comm::call_leader_of(std::size_t node) const {
    std::uint16_t const root = own_call_.root;
    bool const has_root_there = root < members_.size() && layout_.node(root) == node;
    return has_root_there ? root : layout_.leaders[node];
}

group_rank internode_comm::call_leader_index() const {
    auto const found = std::ranges::lower_bound(layout_.local_members, call_leader_of(own_node()));
    return group_rank{static_cast<int>(found - layout_.local_members.begin())};
}

void internode_comm::begin(const sync::call_signature &call) {
    ++call_;
    own_call_ = call;
    state_ = {};
    state_.call = call;
    state_.first = static_cast<std::uint32_t>(self_);
    failure_.reset();
    peer_diverged_ = false;
    match_queue_.begin_call(call_, state_);
    publish_awaited(-1);
}

void internode_comm::raise_veto(std::uint64_t detail) {
    state_.veto_member = static_cast<std::uint32_t>(self_);
    state_.veto = detail;
}

void internode_comm::arrive_on_node(const sync::round_payload &payload,
                                    std::span<const std::byte> data) {
    if (status posted = local_.arrive(own_call_, payload, data); !posted) {
        fail_call(members_[self_].value(), posted.take_failure());
    }
}

void internode_comm::arrive(std::span<const std::byte> data) {
    if (is_only_local_member()) {
        return;
    }
    if (data.size() > sync::node_barrier::max_inline_bytes) {
        // After arrivals without a wait, other members may still read the stage buffer.
        if (status arrived = local_.wait_all_arrived(); !arrived) {
            fail_call(members_[self_].value(), arrived.take_failure());
        }
        if (published_round_ != 0 && published_round_ == local_.barrier().epoch()) {
            wait_for_arrivals(published_round_ + 1); // the others have read the last published data
        }
        std::memcpy(local_.next_stage_buffer(stage_request_bytes(data.size())), data.data(),
                    data.size());
        data = {};
    }
    bool const has_veto = state_.veto_member != call_state::no_member;
    arrive_on_node({has_veto ? 1U : 0U, state_.veto}, data);
    if (!is_call_leader()) {
        arrive_on_node({outcome_ok, self_}, {});
    }
}

void internode_comm::gather_arrivals() {
    for (std::size_t local_index = 0; local_index < local_.size(); ++local_index) {
        if (local_index == layout_.own_local_index) {
            continue;
        }
        if (!wait_for_arrival(local_index)) {
            return;
        }
        group_rank const from{static_cast<int>(local_index)};
        call_state theirs;
        theirs.call = local_.barrier().call_of(from);
        theirs.first = layout_.local_members[local_index];
        if (local_.payload_of(local_index)[0] != 0) {
            theirs.veto_member = theirs.first;
            theirs.veto = local_.payload_of(local_index)[1];
        }
        state_.merge(theirs);
    }
    gathered_round_ = local_.barrier().epoch();
}

std::byte *internode_comm::result_slot_of(std::size_t local_index, std::size_t nbytes,
                                          std::uint64_t round) const {
    if (nbytes > max_stage_data_bytes) {
        return local_.stage_buffer_at(local_index, round, nbytes);
    }
    std::size_t const slot = slot_bytes(nbytes);
    std::size_t const number = round / 2 % num_slots(slot);
    return local_.buffer_half_of(local_index, number % 2) + number / 2 * slot;
}

// A member that has arrived for a call has read the data published in earlier calls. Slots of one
// size are used in order, one every two rounds; after a change of size all members are awaited.
void internode_comm::reserve_result_slot(std::size_t nbytes) {
    std::uint64_t const now =
        local_.barrier().epoch(); // first arrival; the data goes with the second
    std::size_t const slot = slot_bytes(nbytes);
    if (published_slot_bytes_ != slot || published_round_ + 1 != now) {
        gather_arrivals();
        return;
    }
    std::uint64_t const others_read = 2 * (num_slots(slot) - 1);
    if (now >= gathered_round_ + others_read) {
        wait_for_arrivals(now - others_read);
    }
}

void internode_comm::wait_for_arrivals(std::uint64_t round) {
    for (std::size_t local_index = 0; local_index < local_.size(); ++local_index) {
        if (local_index != layout_.own_local_index && !wait_for_arrival(local_index, round)) {
            return;
        }
    }
}

const std::byte *internode_comm::arrival_data(std::size_t local_index, std::size_t nbytes) const {
    return nbytes > sync::node_barrier::max_inline_bytes
               ? local_.stage_buffer_of(local_index, stage_request_bytes(nbytes))
               : local_.inline_data_of(local_index);
}

// Dissemination barrier: after round r a node has the states of the 2^(r+1) - 1 nodes before it,
// directly or through others. If the number of nodes is a power of two, pairs exchange instead:
// then it has those of the nodes whose numbers differ in the last r + 1 bits, and each round waits
// for one other node only.
void internode_comm::disseminate() {
    std::size_t const num = num_nodes();
    std::size_t const own = own_node();
    bool const in_pairs = std::has_single_bit(num);
    std::uint64_t step = step_state;
    for (std::size_t distance = 1; distance < num; distance *= 2, ++step) {
        send_with_state(call_leader_of(in_pairs ? own ^ distance : (own + distance) % num), step,
                        {});
        receive_with_state(call_leader_of(in_pairs ? own ^ distance : (own + num - distance) % num),
                           step, {});
    }
}

void internode_comm::publish_result(std::span<const std::byte> data) {
    if (is_only_local_member()) {
        return;
    }
    if (state_.is_clean()) {
        if (data.size() > sync::node_barrier::max_inline_bytes) {
            // gather_arrivals or reserve_result_slot has waited for the last readers of this slot.
            published_round_ = local_.barrier().epoch() + 1;
            published_slot_bytes_ = slot_bytes(data.size());
            std::memcpy(result_slot_of(layout_.own_local_index, data.size(), published_round_),
                        data.data(), data.size());
            data = {};
        }
        arrive_on_node({outcome_ok, state_.first}, data);
    } else {
        arrive_on_node({outcome_failed, state_.first}, bytes_of(state_));
    }
}

void internode_comm::wait_for_result() {
    group_rank const leader = call_leader_index();
    if (!wait_for_arrival(leader.index())) {
        return;
    }
    const sync::round_payload &payload = local_.payload_of(leader.index());
    call_state theirs;
    if (payload[0] == outcome_failed) {
        std::memcpy(&theirs, local_.inline_data_of(leader.index()), sizeof(theirs));
        // The call ends even if the missing member is another one on this node.
        state_.missing = theirs.missing == self_ ? call_state::no_member : theirs.missing;
    } else {
        theirs.call = local_.barrier().call_of(leader);
        theirs.first = static_cast<std::uint32_t>(payload[1]);
    }
    merge(theirs);
}

const std::byte *internode_comm::published_result(std::size_t nbytes) const {
    std::size_t const leader = call_leader_index().index();
    if (nbytes <= sync::node_barrier::max_inline_bytes) {
        return local_.inline_data_of(leader);
    }
    return result_slot_of(leader, nbytes, local_.barrier().epoch());
}

status internode_comm::outcome() {
    if (!state_.agrees()) {
        match_queue_.update(
            state_, published_awaited_); // later messages of this call are not compared again
        return sync::mismatch_error(members_[state_.first], state_.call, members_[state_.other],
                                    state_.other_call);
    }
    if (failure_) {
        return std::move(*std::exchange(failure_, std::nullopt));
    }
    if (state_.missing != call_state::no_member) {
        return error(OMPX_ERR_TIMEOUT,
                     fmt::format("another rank has given up {}",
                                 describe_wait(members_[state_.missing].value())),
                     "raise DIOMP_TIMEOUT if the other ranks are only slow");
    }
    return {};
}

status internode_comm::late_mismatch() {
    auto const late = match_queue_.take_late_mismatch();
    if (!late) {
        return {};
    }
    const auto &[low, high] =
        std::minmax(late->first, late->second,
                    [](const call_state &a, const call_state &b) { return a.first < b.first; });
    return sync::mismatch_error(members_[low.first], low.call, members_[high.first], high.call);
}

void internode_comm::merge(const call_state &received) {
    call_state usable = received;
    if (usable.missing != call_state::no_member && layout_.node(usable.missing) == own_node()) {
        usable.missing =
            call_state::no_member; // the member that others gave up on has arrived since
    }
    state_.merge(usable);
}

status internode_comm::bcast_from_leader(std::span<std::byte> bytes, bool valid) {
    if (is_only_local_member()) {
        return {};
    }
    DIOMP_TRY(local_.wait_all_arrived());
    for (std::size_t at = 0; at < bytes.size();) {
        std::size_t const n = std::min(bytes.size() - at, local_.stage_buffer_bytes());
        if (is_leader() && valid) {
            std::memcpy(local_.next_stage_buffer(), bytes.data() + at, n);
        }
        DIOMP_TRY(local_.arrive_and_wait(own_call_, {is_leader() && !valid ? 1U : 0U}));
        if (local_.payload_of(0)[0] != 0) {
            return error(OMPX_ERR_PEER,
                         "the leader of this node has lost the connection to another node");
        }
        if (!is_leader()) {
            std::memcpy(bytes.data() + at, local_.stage_buffer_of(0), n);
        }
        at += n;
    }
    return {};
}

status internode_comm::grow_stage_buffers(const sync::call_signature &call,
                                          std::size_t stage_buffer_bytes,
                                          std::size_t buffer_half_bytes) {
    begin(call);
    DIOMP_TRY(agree_on_call());
    if (!is_only_local_member() && local_.may_grow_stage_buffers()) {
        DIOMP_TRY(local_.grow_stage_buffers(call, stage_buffer_bytes, buffer_half_bytes));
    }
    bool const has =
        is_only_local_member() || local_.stage_buffer_bytes() >= max_data_with_state_bytes;
    auto veto =
        agree(call, has ? std::nullopt : std::optional<std::uint64_t>(local_.stage_buffer_bytes()));
    DIOMP_TRY(veto);
    has_large_stage_buffers_ = !veto.value().has_value();
    return {};
}

void internode_comm::run_round() {
    if (is_call_leader()) {
        gather_arrivals();
        disseminate();
        publish_result();
    } else {
        wait_for_result();
    }
}

status internode_comm::arrive_and_wait(const sync::call_signature &call) {
    begin(call);
    DIOMP_TRY(agree_on_call());
    return late_mismatch();
}

status internode_comm::agree_on_call() {
    arrive();
    run_round();
    return outcome();
}

result<std::optional<veto>> internode_comm::agree(const sync::call_signature &call,
                                                  std::optional<std::uint64_t> own_veto) {
    begin(call);
    if (own_veto) {
        raise_veto(*own_veto);
    }
    arrive();
    run_round();
    DIOMP_TRY(outcome());
    if (state_.veto_member == call_state::no_member) {
        return std::optional<veto>{};
    }
    return std::optional{veto{state_.veto_member, state_.veto}};
}

status internode_comm::arrive_and_wait(const sync::call_signature &call,
                                       const sync::round_payload &payload) {
    begin(call);
    payloads_.resize(members_.size());
    payloads_[self_] = payload;
    arrive(std::as_bytes(std::span(payload)));
    if (is_call_leader()) {
        gather_arrivals();
        for (std::size_t local_index = 0; local_index < local_.size() && is_clean();
             ++local_index) {
            if (local_index != layout_.own_local_index) {
                std::memcpy(&payloads_[layout_.local_members[local_index]],
                            arrival_data(local_index, sizeof(payload)), sizeof(payload));
            }
        }
        disseminate();
        publish_result();
    } else {
        wait_for_result();
    }
    DIOMP_TRY(outcome());
    status exchanged = is_leader() ? exchange_payloads() : status{};
    DIOMP_TRY(bcast_from_leader(std::as_writable_bytes(std::span(payloads_)), exchanged.ok()));
    return exchanged;
}

// Bruck's allgather: a leader that has the payloads of `have` nodes, beginning with its own, sends
// them to the node `have` positions before it and receives as many from the node `have` after it.
status internode_comm::exchange_payloads() {
    std::size_t const num = num_nodes();
    std::uint64_t step = step_payloads;
    for (std::size_t have = 1; have < num; ++step) {
        std::size_t const n = std::min(have, num - have);
        std::vector<sync::round_payload> out;
        std::vector<std::uint32_t> expected_members;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::uint32_t const member : layout_.members_of((own_node() + i) % num)) {
                out.push_back(payloads_[member]);
            }
            auto const theirs = layout_.members_of((own_node() + have + i) % num);
            expected_members.insert(expected_members.end(), theirs.begin(), theirs.end());
        }
        std::vector<sync::round_payload> in(expected_members.size());
        recv_request request;
        post_recv(request, layout_.leaders[(own_node() + have) % num], step,
                  std::as_writable_bytes(std::span(in)));
        if (status sent = send(layout_.leaders[(own_node() + num - have) % num], step,
                               std::as_bytes(std::span(out)));
            !sent) {
            matcher_.cancel(match_queue_, request);
            return sent;
        }
        DIOMP_TRY(wait_received(request));
        DIOMP_TRY(finish_sends());
        for (std::size_t i = 0; i < expected_members.size(); ++i) {
            payloads_[expected_members[i]] = in[i];
        }
        have += n;
    }
    return {};
}

} // namespace diomp::group
