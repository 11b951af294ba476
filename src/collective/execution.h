// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call on its way: what the algorithms share.
#pragma once

#include "base/best_way.h"
#include "collective/collective.h"
#include "rma/copy.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace diomp::collective {

/// The caller holds the group's turn for its lifetime.
struct execution {
    group::local_group &members;
    const request &asked;
    const options &chosen;
    sync::call_signature signature;
    reducer reduce;                     ///< reductions only
    std::size_t unit_bytes = 1;         ///< of one element, or 1
    bool try_direct = false;            ///< the first meeting tells the buffers' addresses
    std::size_t shared_from = SIZE_MAX; ///< the members' largest shared_bcast_from_bytes, if told
    std::size_t stage_bytes = 0;        ///< at most so much is in a stage at a time
    best_way *stage_ways = nullptr;     ///< to write the stage, if it is worth learning
    bool has_staged = false;
    std::chrono::steady_clock::time_point staged_since = {}; ///< told while it is tried

    [[nodiscard]] std::size_t size() const { return members.size(); }
    [[nodiscard]] std::size_t self() const { return members.self().index(); }
    [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(asked.root); }
    [[nodiscard]] bool is_root() const { return self() == root(); }
    /// Of one member's block.
    [[nodiscard]] std::size_t block_bytes() const { return asked.amount * unit_bytes; }
    [[nodiscard]] std::byte *dst() const { return static_cast<std::byte *>(asked.dst); }
    [[nodiscard]] const std::byte *src() const { return static_cast<const std::byte *>(asked.src); }
    [[nodiscard]] std::byte *next_stage() const { return members.next_stage(stage_bytes); }
    [[nodiscard]] const std::byte *stage_of(std::size_t member) const {
        return members.stage_of(member, stage_bytes);
    }
    /// Where a stage that holds a block for each other member has that of `to`, counted in blocks.
    [[nodiscard]] static std::size_t place_in_stage(std::size_t owner, std::size_t to) {
        return to < owner ? to : to - 1;
    }
    /// Into the own stage, for others to read.
    void stage(std::byte *to, const std::byte *from, std::size_t nbytes) {
        if (nbytes == 0) {
            return;
        }
        if (!has_staged && stage_ways != nullptr && stage_ways->is_trying()) {
            staged_since = std::chrono::steady_clock::now();
        }
        has_staged = true;
        constexpr std::size_t least_streamed_bytes = 1024; // less is not worth the fence
        if (nbytes >= least_streamed_bytes && stage_ways != nullptr && stage_ways->choice() == 1) {
            rma::copy_streaming(to, from, nbytes);
        } else {
            rma::copy_cached(to, from, nbytes);
        }
    }
    /// Into the program's memory: past the caches where the call is larger than they are.
    void deliver(std::byte *to, const std::byte *from, std::size_t nbytes) const {
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

/// The share of a member in `whole` elements; shares begin at multiples of `grain`.
inline range share_of(std::size_t whole, std::size_t num_members, std::size_t member,
                      std::size_t grain) {
    std::size_t const grains = (whole + grain - 1) / grain;
    auto const at = [&](std::size_t index) {
        std::size_t const cut = grains * index / num_members * grain;
        return cut < whole ? cut : whole;
    };
    return {at(member), at(member + 1) - at(member)};
}

/// Where a piece of a reduction's result lies until it may go to its place: so much of each operand
/// at a time that the result for one member's is still in the first-level cache when the next
/// one's comes. Aligned to a cache line.
class piece_buffer {
public:
    static std::size_t elements_of(std::size_t unit_bytes) {
        constexpr std::size_t cache_block_bytes = 4096;
        return std::max<std::size_t>(1, cache_block_bytes / unit_bytes);
    }
    explicit piece_buffer(std::size_t unit_bytes)
        : elements_(elements_of(unit_bytes)), memory_(elements_ * unit_bytes + cache_line_bytes) {
        auto const address = reinterpret_cast<std::uintptr_t>(memory_.data());
        data_ = memory_.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
    }
    piece_buffer(const piece_buffer &) = delete;
    piece_buffer &operator=(const piece_buffer &) = delete;

    [[nodiscard]] std::size_t elements() const { return elements_; }
    [[nodiscard]] std::byte *data() const { return data_; }

private:
    std::size_t elements_;
    std::vector<std::byte> memory_;
    std::byte *data_;
};

/// What a member tells about its buffers: addresses in the window, or null. Equal ones are in
/// place.
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

/// Elements `part` of all operands, which begin `offset` bytes behind each src, combined; what
/// results goes to the same elements of every destination by deliver(to, from, nbytes).
template <typename Deliver>
void reduce_part(const reducer &reduce, std::size_t unit_bytes,
                 const std::vector<buffer_view> &buffers, std::size_t offset, range part,
                 const std::vector<std::byte *> &destinations, Deliver &&deliver) {
    piece_buffer const aside(unit_bytes); // since in place a destination is an operand
    for (std::size_t first = part.begin; first < part.begin + part.count;
         first += aside.elements()) {
        std::size_t const count = std::min(aside.elements(), part.begin + part.count - first);
        reduce_in_order(reduce, aside.data(), buffers.size(), count, [&](std::size_t member) {
            return buffers[member].src + offset + first * unit_bytes;
        });
        for (std::byte *const to : destinations) {
            deliver(to + first * unit_bytes, aside.data(), count * unit_bytes);
        }
    }
}

/// On one node, by the algorithm that select.h chooses.
status run_here(execution &call);

// The algorithms; each begins with its plan. All return after the caller's part is done.
status run_tiny(execution &call);
status run_staged_move(execution &call, std::size_t chunk_units);
status run_staged_exchange(execution &call, std::size_t chunk_units);
status run_staged_split(execution &call, std::size_t chunk_units);

/// Buffers as the others may reach them.
buffer_view view_of(const options &chosen, const void *src, const void *dst);
/// One meeting: tells the own buffers and learns the others'.
status exchange_buffers(execution &call, std::vector<buffer_view> &buffers);
/// Whether members of a direct bcast share out its copies: all buffers are known and large. What
/// they go by is what they have told each other, so they decide alike.
[[nodiscard]] bool shares_bcast(std::size_t from_bytes, std::size_t nbytes,
                                const std::vector<buffer_view> &buffers);
/// The buffers of a bcast but the root's.
[[nodiscard]] std::vector<std::byte *> bcast_destinations(const std::vector<buffer_view> &buffers,
                                                          std::size_t root);
/// Part `part` of a block of `nbytes` to all destinations.
void write_to_all(const options &chosen, std::size_t nbytes, range part, const std::byte *source,
                  std::span<std::byte *const> destinations);
/// So large are the steps in which shares of a bcast differ.
inline constexpr std::size_t bcast_grain_bytes = 4096;
/// Whether a direct algorithm could use this member's buffers. Of a call with one source only that
/// one matters, and its answer counts for all.
[[nodiscard]] bool allows_direct(const request &asked, const buffer_view &buffers,
                                 std::size_t member);
/// Members that allow it.
[[nodiscard]] std::size_t count_direct(const execution &call,
                                       const std::vector<buffer_view> &buffers);
status run_direct(execution &call, const std::vector<buffer_view> &buffers);

} // namespace diomp::collective
