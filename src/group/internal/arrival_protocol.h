// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two arrivals of a call at the node barrier of each node.
//
// The first arrival of a member carries its call signature. The call leader of the node (its
// leader, or the root of the call) reads them, exchanges tagged messages with the call leaders of
// the other nodes, and publishes the result with its second arrival, for which the other members
// wait. The other members make their second arrival at once, without data. The members of a node
// therefore stay in step even if they make different calls.
//
// Calls in which every member communicates with other nodes: all members do arrive_for_all, gather,
// their exchange, publish_result and wait_for_results, so that each knows of all failures on its
// node. Members in other calls see no difference.
//
// The steps after current_call::begin: arrive. The call leader then does gather, the exchange with
// the other call leaders, and publish_result; the other members do wait_for_result.
#pragma once

#include "group/internal/stage_memory.h"
#include "sync/node_barrier.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::group {

class current_call;
class deadlock_probe;
class local_group;

/// Puts what it sees, and failures, into the current call.
class arrival_protocol {
public:
    arrival_protocol(local_group &local_members, current_call &call, deadlock_probe &probe)
        : local_(local_members), call_(call), probe_(probe) {}

    /// The first arrival. `data` travels with it, or through the stage buffer if it is larger than
    /// max_inline_bytes: up to max_stage_data_bytes, with large stage buffers
    /// max_data_with_state_bytes.
    void arrive(std::span<const std::byte> data = {});
    static constexpr std::size_t max_stage_data_bytes = stage_memory::small_bytes;
    static constexpr std::size_t max_data_with_state_bytes = std::size_t{64} << 10;
    /// Waits for the first arrival of every member on the node.
    void gather();
    /// Waits until no member reads the stage buffer of the coming round any more.
    void wait_for_stage_buffer();
    /// The first arrival in a call in which all members wait for each other, and publish `word`.
    /// Follows the first write to the stage buffer, if any.
    void arrive_for_all(std::uint64_t word);
    /// The word that a member has published. Valid after gather, until the next arrival.
    [[nodiscard]] std::uint64_t word_of(std::size_t local_index) const;
    /// The data of a member's first arrival on this node. Valid after gather.
    [[nodiscard]] const std::byte *data_of(std::size_t local_index, std::size_t nbytes) const;
    /// Replaces gather for a call leader that only publishes data of `nbytes`: waits until no
    /// member still reads the slot that the data goes to. The call leader may thus be some calls
    /// ahead of the other members.
    void reserve_result_slot(std::size_t nbytes);
    /// The second arrival of the call leader. `data` (sizes as for arrive) reaches the members of
    /// the node if the call has not failed. Above max_inline_bytes call gather or
    /// reserve_result_slot before, above max_stage_data_bytes gather.
    void publish_result(std::span<const std::byte> data = {});
    /// Waits for the second arrival of the node's call leader.
    void wait_for_result();
    /// Waits for publish_result of all members on the node, which all call it.
    void wait_for_results();
    /// The call leader's data, aligned to a cache line. Valid after wait_for_result.
    [[nodiscard]] const std::byte *published_result(std::size_t nbytes) const;

private:
    [[nodiscard]] bool is_only_local_member() const;
    [[nodiscard]] std::int32_t own_rank() const;
    void arrive_on_node(const sync::round_payload &payload, std::span<const std::byte> data);
    void wait_for_arrivals(std::uint64_t round); ///< of all on this node
    /// Published data of more than max_inline_bytes uses the slots of both buffer halves in turn.
    [[nodiscard]] static std::size_t slot_bytes(std::size_t nbytes) {
        return std::max(std::bit_ceil(nbytes), 2 * sync::node_barrier::max_inline_bytes);
    }
    [[nodiscard]] static std::size_t num_slots(std::size_t slot) {
        return 2 * (max_stage_data_bytes / slot);
    }
    [[nodiscard]] std::byte *result_slot_of(std::size_t local_index, std::size_t nbytes,
                                            std::uint64_t round) const;
    /// The size to request from local_group: buffers of up to max_stage_data_bytes share one
    /// position, so their size is passed as 0.
    [[nodiscard]] static std::size_t stage_request_bytes(std::size_t nbytes) {
        return nbytes <= max_stage_data_bytes ? 0 : nbytes;
    }

    local_group &local_;
    current_call &call_;
    deadlock_probe &probe_;
    /// The last round with published data in a slot of this member. Other members may still read it
    /// after the call, until they arrive for the next one.
    std::uint64_t published_round_ = 0;
    std::size_t published_slot_bytes_ = 0; ///< slot size of that round
    std::uint64_t gathered_round_ = 0;     ///< last round in which all on this node were seen
};

} // namespace diomp::group
