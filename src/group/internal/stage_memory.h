// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the stage buffers of a node's members lie.
//
// Stage buffers of more than `max_fixed_bytes` rotate through their half if it is large. A cache
// line that a reader still has in its cache must be fetched from there before it can be written
// again, which costs 10 ns between cores that share a cache and 40 ns between others. With two
// halves of the size of the core's own cache, the line has been evicted by then.
#pragma once

#include "base/assert.h"
#include "base/autotuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace diomp::group {

class workspace;

/// The buffer halves of all members on a node, and how the caller writes its own. Lists are indexed
/// by local index.
class stage_memory {
public:
    static constexpr std::size_t small_bytes = 8192;
    /// Smaller stage buffers do not rotate: their few lines are fetched back while the barrier
    /// runs, and faster than lines from a more distant cache.
    static constexpr std::size_t max_fixed_bytes = 4096;

    /// `halves`: the first of each member's two, of small_bytes each.
    stage_memory(workspace &space, std::vector<std::byte *> halves)
        : space_(space), small_halves_(std::move(halves)), halves_(small_halves_) {}

    /// The largest stage buffer.
    [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
    /// A member's stage buffer of a round, of `nbytes`, at most buffer_bytes(). Above
    /// max_fixed_bytes the size must be equal on all members and in all rounds of a call.
    [[nodiscard]] std::byte *at(std::size_t member, std::uint64_t round, std::size_t nbytes) const {
        DIOMP_ASSERT(nbytes <= buffer_bytes_, "a stage buffer has buffer_bytes()");
        std::byte *const half = half_of(member, round % 2);
        if (nbytes <= max_fixed_bytes) {
            return half;
        }
        constexpr std::size_t page_bytes = 4096;
        std::size_t const stride_bytes = (nbytes + page_bytes - 1) / page_bytes * page_bytes;
        std::size_t const num_stages = std::max<std::size_t>(1, half_bytes_ / stride_bytes);
        DIOMP_ASSERT((num_stages - 1) * stride_bytes + nbytes <= half_bytes_,
                     "stages lie in their half");
        return half + round / 2 % num_stages * stride_bytes;
    }
    /// One of a member's two buffer halves, of at least small_bytes each. The caller makes sure
    /// that no member still reads it.
    [[nodiscard]] std::byte *half_of(std::size_t member, std::size_t which) const {
        DIOMP_ASSERT(member < halves_.size() && which < 2, "a member has two halves");
        return halves_[member] + which * half_bytes_;
    }
    /// Learns how this member best writes its stage buffer for blocks of this size: 0, through the
    /// caches, or 1, with streaming stores. nullptr: too small to matter.
    [[nodiscard]] autotuner *autotuner_of(std::size_t block_bytes) {
        constexpr std::size_t min_bytes = std::size_t{2} << 10;
        if (block_bytes < min_bytes) {
            return nullptr;
        }
        auto const index = static_cast<std::size_t>(std::bit_width(block_bytes / min_bytes) - 1);
        return &autotuners_[std::min(index, autotuners_.size() - 1)];
    }

    /// The members have not tried to grow their stage buffers yet.
    [[nodiscard]] bool may_grow() const { return !tried_to_grow_; }
    /// Memory for the two halves of one member, in its slot.
    struct large_halves {
        std::uint64_t offset = 0;
        std::size_t half_bytes = 0; ///< 0: none
    };
    /// Allocates larger halves for this member, of `half_bytes` or else of `buffer_bytes`, unless
    /// an earlier call has. Leaves space for further groups and their stage buffers.
    const large_halves &allocate_large(std::size_t buffer_bytes, std::size_t half_bytes);
    /// Ends the attempt to grow. If all members have larger halves, `halves` of `half_bytes`, they
    /// are used from now on; with half_bytes = 0 the sizes stay as they are for good.
    void finish_growth(std::size_t buffer_bytes, std::vector<std::byte *> halves,
                       std::size_t half_bytes) {
        DIOMP_ASSERT(!tried_to_grow_, "stage buffers grow once");
        DIOMP_ASSERT(half_bytes == 0 || halves.size() == halves_.size(),
                     "all members' buffers grow");
        tried_to_grow_ = true;
        if (half_bytes > 0) {
            halves_ = std::move(halves);
            half_bytes_ = half_bytes;
            buffer_bytes_ = buffer_bytes;
        }
    }
    /// As at the beginning; the larger halves of this member stay its own.
    void reset() {
        halves_ = small_halves_;
        half_bytes_ = buffer_bytes_ = small_bytes;
        tried_to_grow_ = false;
    }
    /// Frees the larger halves of this member.
    void release_large() const;

private:
    workspace &space_;
    std::vector<std::byte *> small_halves_; ///< the first of each member's two
    std::vector<std::byte *> halves_;       ///< likewise, those in use
    std::size_t half_bytes_ = small_bytes;
    std::size_t buffer_bytes_ = small_bytes;
    std::array<autotuner, 15> autotuners_; ///< by powers of two
    large_halves own_large_;
    bool tried_to_grow_ = false;
};

} // namespace diomp::group
