// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collective call of a rank, in 16 bytes that are passed in every round, so that ranks that
// disagree detect it at once and report the same sentence (a rank whose leader has waited so long
// that it asked its peers may name another two of them).
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace diomp::sync {

enum class operation : std::uint8_t {
    none = 0, ///< also the call of a rank whose endpoints disagree
    barrier,
    bcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    reduce_scatter,
    alltoall,
    group_create,
    group_split,
    group_merge,
    group_free,
    alloc_symmetric,
    alloc_asymmetric,
    free_memory,
    reallocate, ///< `type` is the number of the old block's first granule
    finalize,
    gatherv, ///< in the next three, `amount` is a hash of the sizes
    scatterv,
    allgatherv,
    alltoallv,
    scan,
    exscan,
    target_alloc_symmetric, ///< in these three, `reduction` and `type` identify the device
    target_alloc_asymmetric,
    target_free,
    sync, ///< a barrier without a fence
    register_symmetric,
    unregister_symmetric, ///< `amount` numbers the range
    group_split_node,
    group_split_endpoints,
    group_dup,
};

/// Payload of a member in a round of a node barrier: five words of the caller's choice.
using round_payload = std::array<std::uint64_t, 5>;

/// Must be equal on all members of a group, or the call is an error.
struct call_signature {
    static constexpr std::uint16_t no_root = 0xffff;
    // Handles may differ between ranks; the order in which operators are applied may not.
    static constexpr std::uint8_t user_operator = 0xff;
    static constexpr std::uint8_t ordered_user_operator = 0xfe; ///< not commutative

    operation what = operation::none;
    /// An OMPX_ operator, or one of the above; 0: none. In ompx_target_alloc and _free: 1 + the
    /// index of the device among those that the rank drives; 0: it drives others.
    std::uint8_t reduction = 0;
    std::uint16_t root = no_root; ///< group rank
    /// An ompx_type_t; 0: none. In calls of endpoints, the upper byte is the index of the root
    /// among the endpoints of its rank. In allocations it is the logarithm of the alignment, in
    /// ompx_target_alloc and _free the device's number, and the lower bytes are hash_offset() of
    /// the memory's offset; 0: none.
    std::uint32_t type = 0;
    std::uint64_t amount = 0; ///< elements if there is a type, else bytes; offset in frees

    static constexpr std::uint32_t type_mask = 0xffffff;
    [[nodiscard]] std::uint32_t root_endpoint() const { return type >> 24; }
    [[nodiscard]] bool names_device() const {
        return what >= operation::target_alloc_symmetric && what <= operation::target_free;
    }
    /// Whether offset_hash() is one.
    [[nodiscard]] bool names_offset() const {
        return names_device() || what == operation::alloc_symmetric ||
               what == operation::alloc_asymmetric;
    }
    [[nodiscard]] std::uint32_t device() const { return type >> 24; }
    [[nodiscard]] std::uint32_t offset_hash() const { return type & type_mask; }

    /// Hash of an offset, a multiple of 64, to 24 bits; not 0.
    [[nodiscard]] static std::uint32_t hash_offset(std::uint64_t offset) {
        std::uint64_t const granules = offset >> 6;
        return (static_cast<std::uint32_t>(granules ^ granules >> 23) << 1 & type_mask) | 1U;
    }
    /// For calls that name an offset: true if both ranks name the same, or one has no memory, and
    /// the same device number, or each its own device with the same index.
    [[nodiscard]] static bool are_equivalent(const call_signature &left,
                                             const call_signature &right);

    friend bool operator==(const call_signature &left, const call_signature &right) {
        struct words {
            std::uint64_t low, high;
        };
        auto const l = std::bit_cast<words>(left);
        auto const r = std::bit_cast<words>(right);
        return ((l.low ^ r.low) | (l.high ^ r.high)) == 0 ||
               (left.names_offset() && are_equivalent(left, right));
    }
};
static_assert(sizeof(call_signature) == 16);

/// "ompx_bcast".
const char *name_of(operation what);
/// A collective that moves data.
bool carries_data(operation what);
/// A member that is late completes the call although others have given it up: it has no result
/// that others must have, too.
bool completes_late(operation what);
/// "ompx_bcast(root=1, nbytes=8)".
std::string describe(const call_signature &call);

/// OMPX_ERR_MISMATCH: two members made different calls.
error mismatch_error(world_rank one, const call_signature &made, world_rank other,
                     const call_signature &made_by_other);

} // namespace diomp::sync
