// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The owners of a slice combine it over all nodes: each member of a node does so with the members
// of its index on the other nodes, all at the same time. Every message begins with the state of the
// call, so after the first half of the steps an owner knows that all members made the same call; a
// call that has failed goes through the same steps without data.
//
//  doubling   rounds of doubling_order.h, in which partners exchange all they have
//  halving    R. Rabenseifner, Optimization of collective reduction operations, ICCS 2004: in each
//             round partners exchange the halves that they do not keep, then the results in the
//             opposite order. Between them the rounds of doubling are left if not all rounds halve
//  direct     each node reduces a partition, with the operands that the others send it, and sends
//             all the result
//
// Operands are combined in the order of the nodes, which is why halving begins with neighbours.
#pragma once

#include "coll/internal/allreduce_choice.h"
#include "coll/internal/doubling_order.h"
#include "coll/internal/two_level.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace diomp::coll {

/// One slice of a chunk. Posts its receives when it is made, and cancels those that are open when
/// it is destroyed.
class slice_exchange {
public:
    /// Where a slice is and to whom it belongs.
    struct slice {
        std::span<const std::uint32_t> owners; ///< [node]
        std::byte *data = nullptr; ///< aligned to a cache line: the node's operand, then the result
        std::size_t count = 0;     ///< elements
        std::byte *received = nullptr; ///< scratch memory of received_bytes()
    };
    /// `chunk`: its number in the call. Chunks that differ by num_turns do not meet: an owner that
    /// begins a chunk has completed the last but one, so all have begun that one and completed the
    /// one four before.
    slice_exchange(two_level_call &call, const slice &what, const slicing &how, std::size_t chunk);
    ~slice_exchange();
    slice_exchange(const slice_exchange &) = delete;
    slice_exchange &operator=(const slice_exchange &) = delete;

    static constexpr std::size_t num_turns = 4;

    [[nodiscard]] static std::size_t received_bytes(const slicing &how, std::size_t num_nodes,
                                                    std::size_t slice_bytes,
                                                    std::size_t unit_bytes);

    /// The parts of the node's operand, in the order in which they are needed.
    [[nodiscard]] std::span<const range> parts() const { return parts_; }
    /// One more of the parts is there, and what can be done with it is.
    void add_part() {
        ++num_parts_there_;
        advance();
    }
    /// Does the steps whose parts and messages have arrived; does not wait.
    void advance() { run_steps(false); }
    /// Does all steps, when all parts are there. The result is complete if the call has not failed.
    void finish();
    /// For calls that have failed: does the sends that are left, so that no owner waits for them.
    void abandon();

private:
    /// combine_sent: the own operand has been sent too, and must not be overwritten before.
    enum class action : std::uint8_t { send, receive, combine, combine_sent, combine_all };
    struct exchange_step {
        action what;
        std::size_t node = 0;
        range elements;
        std::size_t index = 0; ///< send: of the message; receive, combine: of the receive
        std::size_t num_parts = SIZE_MAX; ///< that must be there; SIZE_MAX: all
    };
    struct incoming {
        group::recv_request request;
        group::call_state state; ///< the sender's
        std::span<std::byte> data;
    };

    /// The first `num_halvings` rounds halve, the others double.
    void plan_rounds(std::size_t num_halvings);
    void plan_direct();
    /// Before and after the rounds, for numbers of nodes that are no powers of two. True if this
    /// node takes no part in the rounds.
    bool plan_fold(const doubling_order &order);
    void plan_unfold(const doubling_order &order);
    /// Sends elements when the first `num_parts` of the parts are there.
    void add_send(std::size_t node, range elements, std::size_t message,
                  std::size_t num_parts = SIZE_MAX);
    /// Receives elements to be combined or, if `is_result`, into their place.
    void add_receive(std::size_t node, range elements, std::size_t message, bool is_result = false);
    /// add_receive, and the combination.
    void add_operand(std::size_t node, range elements, std::size_t message, action combination);

    [[nodiscard]] bool has_parts_of(const exchange_step &next) const {
        return num_parts_there_ >= std::min(next.num_parts, parts_.size());
    }
    void run_steps(bool may_wait);
    [[nodiscard]] bool run_step(const exchange_step &next, bool may_wait);
    void send(const exchange_step &what);
    void receive(const exchange_step &what);
    void combine(const exchange_step &what);
    void combine_all(const exchange_step &what);
    [[nodiscard]] std::size_t slice_bytes() const { return slice_.count * call_.unit_bytes; }
    [[nodiscard]] std::span<std::byte> bytes_of(range elements) const;
    [[nodiscard]] std::uint64_t tag_of(std::size_t message) const;
    /// Partition `first` of `num` and the `count` - 1 after it.
    [[nodiscard]] range partitions(std::size_t num, std::size_t first, std::size_t count) const;

    two_level_call &call_;
    group::internode_channel &channel_;
    slice slice_;
    std::uint64_t turn_;
    std::byte *next_received_;
    std::deque<incoming> incoming_;
    std::vector<range> parts_;
    std::size_t num_parts_there_ = 0;
    std::vector<exchange_step> steps_;
    std::size_t next_step_ = 0;
};

} // namespace diomp::coll
