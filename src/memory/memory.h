// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The global address space as one rank sees it: which place does (rank, address) name?
//
// Glossary: own address: in this rank's segment. Below the symmetric extent it names the same
// offset at every rank; inside an asymmetric part, the same offset of the other rank's part. peer
// address: in the segment of the rank that the call names, as that rank sees it. private address:
// in a range that the rank has registered.
#pragma once

#include "conduit/engine.h"
#include "memory/directory.h"
#include "memory/segment.h"

#include <atomic>
#include <cstdint>

namespace diomp::memory {

/// Where a transfer's remote side is.
struct place {
    std::byte *direct = nullptr;      ///< loadable here, or nullptr
    std::uint64_t remote_address = 0; ///< as the owner sees it
    bool in_segment = false;          ///< else it is registered private memory
    conduit::memory_ends ends = {};   ///< not both host: the network moves device memory
};

/// How often second-level pointers were read from their owner, and found in the cache.
struct pointer_cache_counts {
    std::uint64_t fetched = 0;
    std::uint64_t hits = 0;
};

/// Any thread.
class address_space {
public:
    address_space(world_rank self, const conduit::window &window, conduit::engine &engine,
                  segment &own, directory &directory, bool check_allocations);

    /// The place of [address, address + nbytes) at `peer`. The rank must be valid. Errors name what
    /// is wrong with the address. May wait for an answer of the peer (registered memory and, if it
    /// is not mapped here, asymmetric parts: at first use).
    result<place> locate(world_rank peer, const void *address, std::size_t nbytes);

    /// Of an address in the peer's slot of the window, as the peer sees it. Checks nothing.
    [[nodiscard]] place place_at(world_rank peer, std::uint64_t address) const;

    struct part {
        void *address = nullptr;
        std::size_t nbytes =
            0; ///< from there to the end of the allocation (symmetric: of the owner's copy)
    };
    /// The counterpart of an own address at `peer`, as `peer` sees it.
    result<part> counterpart(world_rank peer, const void *address);

    [[nodiscard]] ompx_addr_info_t describe(const void *address) const;
    [[nodiscard]] bool in_window(const void *address) const {
        return reinterpret_cast<std::uintptr_t>(address) - window_base_ < window_span_;
    }
    /// In the host segment of some rank, where memory is allocated and freed by DiOMP.
    [[nodiscard]] bool in_host_segment(const void *address) const {
        return in_window(address) &&
               (reinterpret_cast<std::uintptr_t>(address) - window_base_) % window_.slot_bytes() <
                   window_.usable_bytes();
    }
    /// Offset in the own segment, if the address lies there.
    [[nodiscard]] std::optional<std::uint64_t> own_offset(const void *address) const;
    [[nodiscard]] pointer_cache_counts cache_counts() const;

private:
    result<place> locate_own(world_rank peer, std::uint64_t offset, std::size_t nbytes);
    result<place> locate_peer(world_rank peer, std::uint64_t address, std::size_t nbytes);
    result<place> locate_private(world_rank peer, std::uint64_t address, std::size_t nbytes);
    result<remote_part> fetch_part(world_rank peer, const asymmetric_view &view);
    status check_own_allocation(std::uint64_t offset, std::size_t nbytes) const;
    result<second_level_pointer> read_pointer(world_rank peer, std::uint64_t offset);
    /// The peer's segment as every process sees it; not mapped everywhere.
    [[nodiscard]] std::uint64_t segment_of(world_rank peer) const {
        return reinterpret_cast<std::uint64_t>(window_.slot(peer)) + internal_bytes;
    }

    const conduit::window &window_;
    conduit::engine &engine_;
    segment &own_;
    directory &directory_;
    std::uintptr_t window_base_;
    std::size_t window_span_;
    world_rank self_;
    bool check_allocations_;
    std::atomic<std::uint64_t> pointers_fetched_{0};
    std::atomic<std::uint64_t> pointer_hits_{0};
};

} // namespace diomp::memory
