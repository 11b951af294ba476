// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory as GPI-2 sees it: the rank's slot, a work segment, and on networks that pin nothing the
// whole address space.
//
// The work segment has the same layout on all ranks: a word that is 1, target words of marker
// reads, staging blocks, and two message rings per peer, one for each direction. Pages that are
// never used are never committed.
#pragma once

#include "launch/gaspi/process.h"
#include "transport/arena.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::transport::gaspi {

/// Transfers up to this size are staged in a block, so that the source can be reused at once.
constexpr std::size_t small_bytes = 8192;
constexpr std::size_t large_block_bytes = std::size_t{256} << 10;

using segment = launch::gaspi::segment;

/// An address of local memory, as GPI-2 names it.
struct location {
    segment segment_id;
    std::uint64_t offset;
};

/// Immutable except for the pools, which one thread at a time may use.
class memory {
public:
    /// Collective, after launch::gaspi::start.
    static result<std::unique_ptr<memory>> create(const arena &arena, world_rank self,
                                                  bool stage_everything);
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
    /// Keeps the work segment mapped: GPI-2 may write to it until the process ends.
    ~memory() = default;

    /// Whether transfers can use this memory without staging.
    [[nodiscard]] bool reaches(const void *at, std::size_t nbytes) const;
    [[nodiscard]] location location_of(const void *at) const;
    [[nodiscard]] std::uint64_t offset_in_slot(world_rank owner, std::uint64_t address) const;
    /// For diomp-info: "TCP" or "InfiniBand".
    [[nodiscard]] const char *network() const { return is_tcp_ ? "TCP" : "InfiniBand"; }

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
        return work_ + outgoing_ + peer.index() * ring_bytes_;
    }
    [[nodiscard]] std::byte *incoming_ring(world_rank peer) const {
        return work_ + incoming_ + peer.index() * ring_bytes_;
    }
    /// Offset in the peer's work segment where messages of this rank arrive.
    [[nodiscard]] std::uint64_t remote_ring() const {
        return incoming_ + self_.index() * ring_bytes_;
    }

private:
    memory(const arena &arena, world_rank self) : arena_(arena), self_(self) {}
    status map();
    static std::byte *take(std::vector<std::byte *> &pool);

    const arena &arena_;
    world_rank self_;
    bool is_tcp_ = false;
    bool reaches_anywhere_ = false;
    std::byte *work_ = nullptr;
    std::size_t work_bytes_ = 0;
    std::size_t large_offset_ = 0;
    std::size_t ring_bytes_ = 0;
    std::size_t outgoing_ = 0;
    std::size_t incoming_ = 0;
    std::vector<std::byte *> words_;
    std::vector<std::byte *> small_blocks_;
    std::vector<std::byte *> large_blocks_;
};

} // namespace diomp::transport::gaspi
