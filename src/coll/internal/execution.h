// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call in progress and the helpers that all algorithms share.
#pragma once

#include "base/autotuner.h"
#include "coll/collective.h"
#include "group/group.h"
#include "rma/copy.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace diomp::coll {

/// The caller holds the group's call lock for its lifetime.
struct execution {
    group::local_group &members;
    const request &args;
    const options &chosen;
    sync::call_signature signature;
    reducer reduce;             ///< reductions only
    std::size_t unit_bytes = 1; ///< size of one element, or 1
    bool try_zero_copy = false; ///< the first round publishes the buffers' addresses
    std::size_t shared_bcast_min =
        SIZE_MAX; ///< the members' largest shared_bcast_min_bytes, if exchanged
    std::size_t stage_buffer_bytes = 0;   ///< bytes used of a stage buffer
    autotuner *stage_autotuner = nullptr; ///< how to write the stage buffer; null: no choice
    /// Writes to the stage buffer.
    struct staging {
        bool has_begun = false;
        std::chrono::steady_clock::time_point since = {}; ///< start of a measured trial
    } staged = {};
    /// The choice between stage buffers and attached memory.
    struct attach_trial {
        std::uint32_t key = 0;                                           ///< attached_memory::tuner
        std::optional<std::chrono::steady_clock::time_point> begin = {}; ///< of a measured call
    } attach = {};

    /// Below, the fence after streaming stores costs more than they save.
    static constexpr std::size_t min_streamed_bytes = 1024;

    [[nodiscard]] std::size_t size() const { return members.size(); }
    [[nodiscard]] std::size_t self() const { return members.self().index(); }
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(args.root); }
    [[nodiscard]] bool is_root() const { return self() == root(); }
    /// Size of one member's block.
    [[nodiscard]] std::size_t block_bytes() const { return args.amount * unit_bytes; }
    [[nodiscard]] std::byte *dst() const { return static_cast<std::byte *>(args.dst); }
    [[nodiscard]] const std::byte *src() const { return static_cast<const std::byte *>(args.src); }
    [[nodiscard]] std::byte *next_stage_buffer() const {
        return members.next_stage_buffer(stage_buffer_bytes);
    }
    [[nodiscard]] const std::byte *stage_buffer_of(std::size_t member) const {
        return members.stage_buffer_of(member, stage_buffer_bytes);
    }
    /// Index of the block for `to` in a stage buffer with a block for each other member.
    [[nodiscard]] static std::size_t stage_block_index(std::size_t owner, std::size_t to) {
        return to < owner ? to : to - 1;
    }
    /// Copies into the own stage buffer, for other members to read.
    void copy_to_stage_buffer(std::byte *to, const std::byte *from, std::size_t nbytes) {
        if (nbytes == 0) {
            return;
        }
        if (!staged.has_begun && stage_autotuner != nullptr && stage_autotuner->is_measuring()) {
            staged.since = std::chrono::steady_clock::now();
        }
        staged.has_begun = true;
        if (nbytes >= min_streamed_bytes && stage_autotuner != nullptr &&
            stage_autotuner->choice() == 1) {
            rma::copy_streaming(to, from, nbytes);
        } else {
            rma::copy_cached(to, from, nbytes);
        }
    }
    /// Copies into the program's memory; with streaming stores if the call is larger than the
    /// caches.
    void copy_to_user(std::byte *to, const std::byte *from, std::size_t nbytes) const {
        if (to == from || nbytes == 0) {
            return;
        }
        if (block_bytes() >= chosen.stream_threshold_bytes && nbytes >= 4096) {
            rma::copy_streaming(to, from, nbytes);
        } else {
            rma::copy_cached(to, from, nbytes);
        }
    }
};

/// Elements [begin, begin + count) of a call.
struct range {
    std::size_t begin = 0;
    std::size_t count = 0;
};

/// Equal chunks that cover a call; the last may be shorter.
struct chunking {
    std::size_t total = 0;
    std::size_t chunk = 1;
    [[nodiscard]] std::size_t num_chunks() const { return (total + chunk - 1) / chunk; }
    [[nodiscard]] range operator[](std::size_t index) const {
        std::size_t const begin = index * chunk;
        return {begin, total - begin < chunk ? total - begin : chunk};
    }
};

/// The partition of a member in `whole` elements; it begins at a multiple of `alignment`.
inline range partition_range(std::size_t whole, std::size_t num_members, std::size_t member,
                             std::size_t alignment) {
    std::size_t const num_units = (whole + alignment - 1) / alignment;
    auto const at = [&](std::size_t index) {
        std::size_t const cut = num_units * index / num_members * alignment;
        return cut < whole ? cut : whole;
    };
    return {at(member), at(member + 1) - at(member)};
}

/// Buffer for a block of a reduction's result. The block is small enough that the result of one
/// operand is still in the first-level cache when the next operand is combined. Aligned to a cache
/// line.
class cache_block_buffer {
public:
    static std::size_t elements_of(std::size_t unit_bytes) {
        constexpr std::size_t cache_block_bytes = 4096;
        return std::max<std::size_t>(1, cache_block_bytes / unit_bytes);
    }
    explicit cache_block_buffer(std::size_t unit_bytes)
        : elements_(elements_of(unit_bytes)), memory_(elements_ * unit_bytes + cache_line_bytes) {
        auto const address = reinterpret_cast<std::uintptr_t>(memory_.data());
        data_ = memory_.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
    }
    cache_block_buffer(const cache_block_buffer &) = delete;
    cache_block_buffer &operator=(const cache_block_buffer &) = delete;

    [[nodiscard]] std::size_t elements() const { return elements_; }
    [[nodiscard]] std::byte *data() const { return data_; }

private:
    std::size_t elements_;
    std::vector<std::byte> memory_;
    std::byte *data_;
};

/// A member's buffers as published to the others: addresses in the arena, or null. Equal addresses
/// mean in place.
struct buffer_view {
    std::byte *src = nullptr;
    std::byte *dst = nullptr;
};

/// out = operand(0) op operand(1) op ... over `count` elements; operand(member) points to the first
/// one. out may be one of the operands.
template <typename Operand>
void reduce_in_order(const reducer &reduce, std::byte *out, std::size_t num_members,
                     std::size_t count, Operand &&operand) {
    reduce.apply(out, operand(std::size_t{0}), operand(std::size_t{1}), count);
    for (std::size_t member = 2; member < num_members; ++member) {
        reduce.apply(out, out, operand(member), count);
    }
}

/// Combines the elements `partition` of all operands, which begin `offset` bytes after each src,
/// and passes the result for every destination to copy_to_user(to, from, nbytes).
template <typename CopyToUser>
void reduce_partition(const reducer &reduce, std::size_t unit_bytes,
                      const std::vector<buffer_view> &buffers, std::size_t offset, range partition,
                      const std::vector<std::byte *> &destinations, CopyToUser &&copy_to_user) {
    cache_block_buffer const scratch(unit_bytes); // in place, a destination is an operand
    for (std::size_t first = partition.begin; first < partition.begin + partition.count;
         first += scratch.elements()) {
        std::size_t const count =
            std::min(scratch.elements(), partition.begin + partition.count - first);
        reduce_in_order(reduce, scratch.data(), buffers.size(), count, [&](std::size_t member) {
            return buffers[member].src + offset + first * unit_bytes;
        });
        for (std::byte *const to : destinations) {
            copy_to_user(to + first * unit_bytes, scratch.data(), count * unit_bytes);
        }
    }
}

/// What a member publishes about access to private buffers (attached.h).
struct attach_offer {
    static constexpr std::uint64_t is_able = 1; ///< the system permits it to this member
    static constexpr std::uint64_t is_preferred = 2;
    static constexpr std::uint64_t is_ready = 4; ///< preferred, and its buffers allow it

    std::uint64_t own_ns = 0; ///< agreed_autotuner::own_ns()
    std::uint64_t flags = 0;
    [[nodiscard]] bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
};

/// Runs the call on one node with the algorithm that select() chooses.
status run_intra_node_call(execution &call);

// The algorithms. Each returns after the caller's part is done.
status run_inline_data(execution &call);
status run_staged(execution &call, std::size_t chunk_units);
status run_flat(execution &call, std::size_t chunk_units);
status run_reduce_scatter_allgather(execution &call, std::size_t chunk_units);

/// The buffers to publish: null if they lie outside of the arena.
buffer_view view_of(const options &chosen, const void *src, const void *dst);
/// What the members of a large call publish in its first round. Lists by member.
struct published_buffers {
    std::vector<buffer_view> in_arena; ///< null: private
    std::vector<buffer_view> all;      ///< addresses in their owner's process
    std::vector<attach_offer> offers;
};
/// Publishes the own buffers and gets those of all members, in one round.
status exchange_buffers(execution &call, const attach_offer &own, published_buffers &all);
/// Whether the members of a zero-copy bcast share its copies: all buffers are published and large.
/// Depends on exchanged data only, so it is equal on all members.
[[nodiscard]] bool uses_shared_bcast(std::size_t from_bytes, std::size_t nbytes,
                                     const std::vector<buffer_view> &buffers);
/// The buffers of a bcast without the root's.
[[nodiscard]] std::vector<std::byte *> bcast_destinations(const std::vector<buffer_view> &buffers,
                                                          std::size_t root);
/// Copies `partition` of a block of `nbytes` to all destinations.
void write_to_all(const options &chosen, std::size_t nbytes, range partition,
                  const std::byte *source, std::span<std::byte *const> destinations);
/// Alignment of the partitions of a bcast.
inline constexpr std::size_t bcast_alignment_bytes = 4096;
/// Whether a zero-copy algorithm can use this member's buffers. In a call with one source only that
/// member's answer counts.
[[nodiscard]] bool allows_zero_copy(const request &args, const buffer_view &buffers,
                                    std::size_t member);
/// Number of members whose buffers allow a zero-copy algorithm.
[[nodiscard]] std::size_t count_zero_copy(const execution &call,
                                          const std::vector<buffer_view> &buffers);
status run_zero_copy(execution &call, const std::vector<buffer_view> &buffers);

} // namespace diomp::coll
