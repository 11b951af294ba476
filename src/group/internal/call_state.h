// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The merged view of several members on one call: 56 bytes that are exchanged between nodes.
#pragma once

#include "sync/call_signature.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::group {

/// Members are identified by group rank.
struct call_state {
    static constexpr std::uint32_t no_member = 0xffffffff;
    static constexpr std::uint32_t late = 1U << 31;

    sync::call_signature call;       ///< of `first`
    sync::call_signature other_call; ///< of `other`
    std::uint32_t first = no_member; ///< lowest member in this view
    std::uint32_t other = no_member; ///< lowest member whose call differs from that of `first`
    /// A member that another one gave up waiting for, with `late` unless it is lost: a lost one has
    /// precedence in merge().
    std::uint32_t missing = no_member;
    std::uint32_t veto_member = no_member; ///< lowest member that vetoes the call
    std::uint64_t veto = 0;                ///< the reason that it gave

    /// Call only if there is one.
    [[nodiscard]] std::uint32_t missing_member() const { return missing & ~late; }
    [[nodiscard]] bool agrees() const { return other == no_member; }
    [[nodiscard]] bool is_clean() const {
        return other == no_member && missing == no_member && veto_member == no_member;
    }

    /// Commutative, associative and idempotent: the states of a set of members give one result in
    /// any order.
    void merge(const call_state &received) {
        call_state const low = first <= received.first ? *this : received;
        call_state const high = first <= received.first ? received : *this;
        first = low.first;
        call = low.call;
        other = low.other;
        other_call = low.other_call;
        if (high.first < other && !(high.call == call)) {
            other = high.first;
            other_call = high.call;
        }
        if (high.other < other && !(high.other_call == call)) {
            other = high.other;
            other_call = high.other_call;
        }
        missing = std::min(missing, received.missing);
        if (received.veto_member < veto_member) {
            veto_member = received.veto_member;
            veto = received.veto;
        }
    }
};
static_assert(sizeof(call_state) == 56);

/// Wire format of a state.
inline std::span<std::byte> bytes_of(call_state &state) {
    return std::as_writable_bytes(std::span(&state, 1));
}
inline std::span<const std::byte> bytes_of(const call_state &state) {
    return std::as_bytes(std::span(&state, 1));
}

} // namespace diomp::group
