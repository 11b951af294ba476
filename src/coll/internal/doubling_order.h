// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of recursive doubling: in round r a node exchanges its result with the node whose
// number differs in bit r, so all combine the same pairs in the same order. If the number of nodes
// N is not a power of two, the first 2 (N - 2^k) nodes fold into half as many before, and the
// folded nodes get the result after.
#pragma once

#include <bit>
#include <cstddef>

namespace diomp::coll {

/// The partners of one node.
class doubling_order {
public:
    doubling_order(std::size_t num_nodes, std::size_t own)
        : num_power_of_two_(std::bit_floor(num_nodes)), num_folded_(num_nodes - num_power_of_two_),
          own_(own) {}

    /// The node combines its operand with that of fold_partner() before the rounds.
    [[nodiscard]] bool folds() const { return own_ < 2 * num_folded_; }
    /// The node is the one of the two that takes no part in the rounds.
    [[nodiscard]] bool is_folded() const { return folds() && own_ % 2 == 1; }
    [[nodiscard]] std::size_t fold_partner() const { return is_folded() ? own_ - 1 : own_ + 1; }

    [[nodiscard]] std::size_t num_rounds() const {
        return static_cast<std::size_t>(std::bit_width(num_power_of_two_)) - 1;
    }
    [[nodiscard]] std::size_t partner(std::size_t round) const {
        std::size_t const other = (folds() ? own_ / 2 : own_ - num_folded_) ^ std::size_t{1}
                                                                                  << round;
        return other < num_folded_ ? 2 * other : other + num_folded_;
    }

private:
    std::size_t num_power_of_two_;
    std::size_t num_folded_;
    std::size_t own_;
};

} // namespace diomp::coll
