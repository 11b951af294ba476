// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The conduit's own memory that other ranks access. It has the same layout on all ranks: a word
// that is 1, target words of marker reads, staging blocks, and two message rings per peer, one for
// each direction. Pages that are never used are never committed.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diomp::transport::gaspi {

/// Transfers up to this size are staged in a block, so that the source can be reused at once.
constexpr std::size_t small_bytes = 8192;
constexpr std::size_t large_block_bytes = std::size_t{256} << 10;

/// Immutable except for the pools, which one thread at a time may use. Never unmapped: GPI-2 may
/// write to it until the process ends.
class work_segment {
public:
    static result<work_segment> map(std::size_t num_ranks, world_rank self);

    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

    /// A staging block; nullptr if all are in use.
    std::byte *acquire_block(bool large) { return take(large ? large_blocks_ : small_blocks_); }
    void release_block(std::byte *block);
    /// A word that is 0 and becomes 1 when the read of `one_offset` arrives; nullptr if none is
    /// left.
    std::atomic<std::uint32_t> *acquire_word();
    void release_word(std::atomic<std::uint32_t> *word) {
        words_.push_back(reinterpret_cast<std::byte *>(word));
    }
    static constexpr std::uint64_t one_offset = 0;

    [[nodiscard]] std::size_t ring_bytes() const { return ring_bytes_; }
    /// Local rings: messages to the peer, and messages from it.
    [[nodiscard]] std::byte *outgoing_ring(world_rank peer) const {
        return bytes_.data() + outgoing_ + peer.index() * ring_bytes_;
    }
    [[nodiscard]] std::byte *incoming_ring(world_rank peer) const {
        return bytes_.data() + incoming_ + peer.index() * ring_bytes_;
    }
    /// Offset in the peer's work segment where messages of this rank arrive.
    [[nodiscard]] std::uint64_t remote_ring() const {
        return incoming_ + self_.index() * ring_bytes_;
    }

private:
    work_segment(std::size_t num_ranks, world_rank self);
    static std::byte *take(std::vector<std::byte *> &pool);

    world_rank self_;
    std::size_t ring_bytes_;
    std::size_t outgoing_;
    std::size_t incoming_;
    std::span<std::byte> bytes_;
    std::vector<std::byte *> words_;
    std::vector<std::byte *> small_blocks_;
    std::vector<std::byte *> large_blocks_;
};

} // namespace diomp::transport::gaspi
