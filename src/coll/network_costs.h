// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What messages between nodes and rounds on a node cost, as the choice between algorithms sees it:
// LogGP between nodes (Alexandrov et al., SPAA 1995), stores and the lines that a core reads on a
// node. The defaults serve all networks that the library knows, since ratios matter most; a
// simulation sets those of its machine. Equal on all members.
#pragma once

#include <bit>
#include <cstddef>

namespace diomp::coll {

struct network_costs {
    double latency_us = 2;    ///< from the end of a send to the begin of its receive
    double overhead_us = 0.7; ///< of a core that sends, or receives, a message
    double flag_us = 0.2;     ///< until a core sees another core's store
    double line_us = 0.05;    ///< to read one more line that another core has written
    double copy_us = 1e-4;    ///< to copy a byte
    double combine_us = 1e-4; ///< to combine a byte of two operands
    double byte_us = 1e-4;    ///< of a byte between nodes, of which a node sends one at a time

    bool operator==(const network_costs &) const = default;

    /// A message that the receiver waits for.
    [[nodiscard]] double message_us() const { return latency_us + 2 * overhead_us; }
    /// A barrier of the members of a node.
    [[nodiscard]] double node_round_us(std::size_t num_local) const {
        return num_local < 2 ? 0 : 2 * flag_us + static_cast<double>(num_local) * line_us;
    }
    /// Every node sends to every other node.
    [[nodiscard]] double direct_exchange_us(std::size_t num_nodes) const {
        return static_cast<double>(num_nodes - 1) * 2 * overhead_us + latency_us;
    }
    /// As many rounds as the number of nodes has bits; each round waits for the last one.
    [[nodiscard]] double doubling_exchange_us(std::size_t num_nodes) const {
        return static_cast<double>(std::bit_width(num_nodes - 1)) * message_us();
    }
};

inline network_costs costs_or_usual(const network_costs *given) {
    return given != nullptr ? *given : network_costs{};
}

} // namespace diomp::coll
