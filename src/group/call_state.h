// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What some members of a group have said about one call, in 56 bytes that travel between nodes.
#pragma once

#include "sync/call_signature.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::group {

/// Members are group ranks.
struct call_state {
    static constexpr std::uint32_t nobody = 0xffffffff;

    sync::call_signature call;       ///< of `first`
    sync::call_signature other_call; ///< of `other`
    std::uint32_t first = nobody;    ///< the lowest member of those
    std::uint32_t other = nobody;    ///< the lowest one that made another call than `first`
    std::uint32_t missing = nobody;  ///< somebody has given up waiting for it
    std::uint32_t objector = nobody; ///< the lowest one that agrees but cannot do its part
    std::uint64_t objection = 0;     ///< what it says about that

    [[nodiscard]] bool agrees() const { return other == nobody; }
    [[nodiscard]] bool is_clean() const {
        return other == nobody && missing == nobody && objector == nobody;
    }

    /// The same result in whatever order the states of a set of members are merged, also if some
    /// are merged twice.
    void merge(const call_state &heard) {
        call_state const low = first <= heard.first ? *this : heard;
        call_state const high = first <= heard.first ? heard : *this;
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
        missing = std::min(missing, heard.missing);
        if (heard.objector < objector) {
            objector = heard.objector;
            objection = heard.objection;
        }
    }
};
static_assert(sizeof(call_state) == 56);

/// As it travels.
inline std::span<std::byte> bytes_of(call_state &state) {
    return std::as_writable_bytes(std::span(&state, 1));
}

} // namespace diomp::group
