// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/arrival_protocol.h"

#include "group/internal/current_call.h"
#include "group/internal/deadlock_probe.h"
#include "group/internal/local_group.h"

#include <cstring>

namespace diomp::group {
namespace {

/// First word of a call leader's second arrival.
constexpr std::uint64_t outcome_ok = 0;
constexpr std::uint64_t outcome_failed = 1;

} // namespace

bool arrival_protocol::is_only_local_member() const { return local_.size() == 1; }

std::int32_t arrival_protocol::own_rank() const {
    return local_.members()[local_.self().index()].value();
}

void arrival_protocol::arrive_on_node(const sync::round_payload &payload,
                                      std::span<const std::byte> data) {
    if (status posted = local_.barrier().arrive(call_.signature(), payload, data); !posted) {
        call_.fail(own_rank(), posted.take_failure());
    }
}

void arrival_protocol::arrive(std::span<const std::byte> data) {
    if (is_only_local_member()) {
        return;
    }
    if (data.size() > sync::node_barrier::max_inline_bytes) {
        wait_for_stage_buffer();
        std::memcpy(local_.next_stage_buffer(stage_request_bytes(data.size())), data.data(),
                    data.size());
        data = {};
    }
    bool const has_veto = call_.state().veto_member != call_state::no_member;
    arrive_on_node({has_veto ? 1U : 0U, call_.state().veto}, data);
    if (!call_.is_call_leader()) {
        arrive_on_node({outcome_ok, call_.layout().self()}, {});
    }
}

// After arrivals without a wait, other members may still read the stage buffer.
void arrival_protocol::wait_for_stage_buffer() {
    if (status arrived = local_.barrier().wait_all_arrived(); !arrived) {
        call_.fail(own_rank(), arrived.take_failure());
    }
    if (published_round_ != 0 && published_round_ == local_.barrier().epoch()) {
        wait_for_arrivals(published_round_ + 1); // the others have read the last published data
    }
}

void arrival_protocol::arrive_for_all(std::uint64_t word) { arrive_on_node({0, 0, word}, {}); }

std::uint64_t arrival_protocol::word_of(std::size_t local_index) const {
    return local_.barrier().payload_of(local_index)[2];
}

void arrival_protocol::gather() {
    for (std::size_t local_index = 0; local_index < local_.size(); ++local_index) {
        if (local_index == local_.self().index()) {
            continue;
        }
        if (!probe_.wait_for_arrival(local_index, local_.barrier().epoch())) {
            return;
        }
        call_state theirs;
        theirs.call = local_.barrier().call_of(local_index);
        theirs.first = call_.layout().local_members[local_index];
        if (local_.barrier().payload_of(local_index)[0] != 0) {
            theirs.veto_member = theirs.first;
            theirs.veto = local_.barrier().payload_of(local_index)[1];
        }
        call_.merge(theirs);
    }
    gathered_round_ = local_.barrier().epoch();
}

std::byte *arrival_protocol::result_slot_of(std::size_t local_index, std::size_t nbytes,
                                            std::uint64_t round) const {
    if (nbytes > max_stage_data_bytes) {
        return local_.stage_buffers().at(local_index, round, nbytes);
    }
    std::size_t const slot = slot_bytes(nbytes);
    std::size_t const number = round / 2 % num_slots(slot);
    return local_.stage_buffers().half_of(local_index, number % 2) + number / 2 * slot;
}

// A member that has arrived for a call has read the data published in earlier calls. Slots of one
// size are used in order, one every two rounds; after a change of size all members are awaited.
void arrival_protocol::reserve_result_slot(std::size_t nbytes) {
    std::uint64_t const now =
        local_.barrier().epoch(); // first arrival; the data goes with the second
    std::size_t const slot = slot_bytes(nbytes);
    if (published_slot_bytes_ != slot || published_round_ + 1 != now) {
        gather();
        return;
    }
    std::uint64_t const others_read = 2 * (num_slots(slot) - 1);
    if (now >= gathered_round_ + others_read) {
        wait_for_arrivals(now - others_read);
    }
}

void arrival_protocol::wait_for_arrivals(std::uint64_t round) {
    for (std::size_t local_index = 0; local_index < local_.size(); ++local_index) {
        if (local_index != local_.self().index() && !probe_.wait_for_arrival(local_index, round)) {
            return;
        }
    }
}

const std::byte *arrival_protocol::data_of(std::size_t local_index, std::size_t nbytes) const {
    return nbytes > sync::node_barrier::max_inline_bytes
               ? local_.stage_buffer_of(local_index, stage_request_bytes(nbytes))
               : local_.barrier().inline_data_of(local_index);
}

void arrival_protocol::publish_result(std::span<const std::byte> data) {
    if (is_only_local_member()) {
        return;
    }
    if (call_.state().is_clean() && !call_.is_given_up()) {
        if (data.size() > sync::node_barrier::max_inline_bytes) {
            // gather or reserve_result_slot has waited for the last readers of this slot.
            published_round_ = local_.barrier().epoch() + 1;
            published_slot_bytes_ = slot_bytes(data.size());
            std::memcpy(result_slot_of(local_.self().index(), data.size(), published_round_),
                        data.data(), data.size());
            data = {};
        }
        arrive_on_node({outcome_ok, call_.state().first}, data);
    } else {
        arrive_on_node({outcome_failed, call_.state().first}, bytes_of(call_.state()));
    }
}

void arrival_protocol::wait_for_result() {
    std::size_t const leader = call_.call_leader_index();
    if (!probe_.wait_for_arrival(leader, local_.barrier().epoch())) {
        return;
    }
    const sync::round_payload &payload = local_.barrier().payload_of(leader);
    call_state theirs;
    if (payload[0] == outcome_failed) {
        std::memcpy(&theirs, local_.barrier().inline_data_of(leader), sizeof(theirs));
        call_.adopt_failure(theirs);
        return;
    }
    theirs.call = local_.barrier().call_of(leader);
    theirs.first = static_cast<std::uint32_t>(payload[1]);
    call_.merge(theirs);
}

void arrival_protocol::wait_for_results() {
    for (std::size_t local_index = 0; local_index < local_.size(); ++local_index) {
        if (local_index == local_.self().index()) {
            continue;
        }
        if (!probe_.wait_for_arrival(local_index, local_.barrier().epoch())) {
            return;
        }
        if (local_.barrier().payload_of(local_index)[0] == outcome_failed) {
            call_state theirs;
            std::memcpy(&theirs, local_.barrier().inline_data_of(local_index), sizeof(theirs));
            call_.adopt_failure(theirs);
            return;
        }
    }
}

const std::byte *arrival_protocol::published_result(std::size_t nbytes) const {
    std::size_t const leader = call_.call_leader_index();
    return nbytes <= sync::node_barrier::max_inline_bytes
               ? local_.barrier().inline_data_of(leader)
               : result_slot_of(leader, nbytes, local_.barrier().epoch());
}

} // namespace diomp::group
