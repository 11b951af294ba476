// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which collective call a rank has made, in 16 bytes that travel with every meeting, so that ranks
// that disagree learn it at once and from one sentence.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp.h"

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
    realloc_symmetric,
    finalize,
    gatherv, ///< of the next three `amount` is a hash of the sizes
    scatterv,
    allgatherv,
    alltoallv,
    scan,
    exscan,
    target_alloc_symmetric, ///< of these three `reduction` and `type` tell the device
    target_alloc_asymmetric,
    target_free,
};

/// Equal on all members of a group, or the call is an error.
struct call_signature {
    static constexpr std::uint16_t no_root = 0xffff;
    static constexpr std::uint8_t user_operator = 0xff; ///< handles may differ between ranks

    operation what = operation::none;
    /// An OMPX_ operator, or user_operator; 0: none. Of ompx_target_alloc and _free 1 + the
    /// device's place among those that the rank drives; 0: it drives others.
    std::uint8_t reduction = 0;
    std::uint16_t root = no_root; ///< group rank
    /// An ompx_type_t; alignment for allocations; 0: none. Of calls of endpoints the upper byte is
    /// the root's place among those of its rank; of ompx_target_alloc and _free the device's
    /// number, and the lower ones fold() where the memory would lie; 0: nowhere.
    std::uint32_t type = 0;
    std::uint64_t amount = 0; ///< elements if there is a type, else bytes; offset for frees

    static constexpr std::uint32_t type_mask = 0xffffff;
    [[nodiscard]] std::uint32_t root_place() const { return type >> 24; }
    [[nodiscard]] bool names_device() const {
        return what >= operation::target_alloc_symmetric && what <= operation::target_free;
    }
    [[nodiscard]] std::uint32_t device() const { return type >> 24; }
    [[nodiscard]] std::uint32_t folded() const { return type & type_mask; }

    /// 24 bits of a place on a device, which is a multiple of 64; not 0.
    [[nodiscard]] static std::uint32_t fold(std::uint64_t offset) {
        std::uint64_t const granules = offset >> 6;
        return (static_cast<std::uint32_t>(granules ^ granules >> 23) << 1 & type_mask) | 1U;
    }
    /// Of calls that name a device: ranks mean the same if they give the same number, or each one
    /// of its own in the same place.
    [[nodiscard]] static bool mean_the_same(const call_signature &left,
                                            const call_signature &right);

    friend bool operator==(const call_signature &left, const call_signature &right) {
        struct words {
            std::uint64_t low, high;
        };
        auto const l = std::bit_cast<words>(left);
        auto const r = std::bit_cast<words>(right);
        return ((l.low ^ r.low) | (l.high ^ r.high)) == 0 ||
               (left.names_device() && mean_the_same(left, right));
    }
};
static_assert(sizeof(call_signature) == 16);

/// "ompx_bcast".
const char *name_of(operation what);
/// "ompx_bcast(root=1, nbytes=8)".
std::string describe(const call_signature &call);

/// OMPX_ERR_MISMATCH: two members made different calls.
error disagreement(world_rank one, const call_signature &made, world_rank other,
                   const call_signature &made_by_other);

/// "OMPX_DOUBLE", "OMPX_TYPE_OF_SIZE(24)"; "OMPX_SUM", "user-defined".
std::string type_name(ompx_type_t type);
std::string operator_name(ompx_op_t op);

} // namespace diomp::sync
