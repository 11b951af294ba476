// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory as GPI-2 sees it: the rank's slot, a segment of our own, and on networks that pin nothing
// the whole address space.
//
// Our own segment, the same layout on all ranks: a word that is 1, places where such words are read
// to (markers), blocks that transfers go through, and two rings of messages per rank, what we send
// to it and what it sends to us. Pages that are never used are never committed.
#pragma once

#include "conduit/window.h"
#include "launch/gaspi/process.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::conduit::gaspi {

/// Transfers up to this size go through a block, so that their source is free at once.
constexpr std::size_t small_bytes = 8192;
constexpr std::size_t large_block_bytes = std::size_t{256} << 10;

using segment = launch::gaspi::segment;

/// A piece of local memory by GPI-2's names.
struct place {
    segment where;
    std::uint64_t offset;
};

/// Immutable but for the pools, which one thread at a time may use.
class memory {
public:
    /// Collective, after launch::gaspi::start.
    static result<std::unique_ptr<memory>> create(const window &window, world_rank self,
                                                  bool stage_everything);
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
    /// The segment stays: GPI-2 may write to it until the process ends.
    ~memory() = default;

    /// Whether transfers may start and end there without a copy.
    [[nodiscard]] bool reaches(const void *at, std::size_t nbytes) const;
    [[nodiscard]] place place_of(const void *at) const;
    [[nodiscard]] std::uint64_t offset_in_slot(world_rank owner, std::uint64_t address) const;
    /// For diomp-info: "TCP" or "InfiniBand".
    [[nodiscard]] const char *network() const { return is_tcp_ ? "TCP" : "InfiniBand"; }

    /// nullptr: all are in use.
    std::byte *take_block(bool large) { return take(large ? large_blocks_ : small_blocks_); }
    void give_block(std::byte *block);
    /// A word that is 0 and becomes 1 when the read of `one_offset` arrives. nullptr: none left.
    std::atomic<std::uint32_t> *take_word();
    void give_word(std::atomic<std::uint32_t> *word) {
        words_.push_back(reinterpret_cast<std::byte *>(word));
    }
    static constexpr std::uint64_t one_offset = 0;

    [[nodiscard]] std::size_t ring_bytes() const { return ring_bytes_; }
    /// Here: what goes to the peer, and what has come from it.
    [[nodiscard]] std::byte *outgoing_ring(world_rank peer) const {
        return work_ + outgoing_ + peer.index() * ring_bytes_;
    }
    [[nodiscard]] std::byte *incoming_ring(world_rank peer) const {
        return work_ + incoming_ + peer.index() * ring_bytes_;
    }
    /// At the peer: where our messages arrive.
    [[nodiscard]] std::uint64_t remote_ring() const {
        return incoming_ + self_.index() * ring_bytes_;
    }

private:
    memory(const window &window, world_rank self) : window_(window), self_(self) {}
    status map();
    static std::byte *take(std::vector<std::byte *> &pool);

    const window &window_;
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

} // namespace diomp::conduit::gaspi
