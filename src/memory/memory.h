// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The global address space as one rank sees it: translates (rank, address) into a location.
//
// Glossary: own address: in this rank's segment. Below the symmetric extent it names the same
// offset at every rank; inside an asymmetric block, the same offset of the other rank's block. peer
// address: in the segment of the rank that the call names, in that rank's address space. private
// address: in a range that the rank has registered.
//
// A peer on another node may have the same slot as this rank (transport/arena.h); its addresses
// then lie in the own slot. An address below the symmetric extent and one in an asymmetric block
// mean the same for both readings: symmetric offsets are equal on all ranks, and so are the
// beginnings of asymmetric blocks if slots are shared (internal/alike_ranges.h). All other
// addresses of the own slot are the peer's, since own local memory has no counterpart.
#pragma once

#include "memory/location.h"
#include "memory/segment.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace diomp::messaging {
class engine;
}

namespace diomp::memory {

class counterpart_table;
class directory;

/// Second-level pointers read from their owners, and cache hits.
struct pointer_cache_counts {
    std::uint64_t fetched = 0;
    std::uint64_t hits = 0;
};

/// Any thread.
class address_space {
public:
    address_space(world_rank self, const transport::arena &arena, messaging::engine &engine,
                  segment &own, directory &directory, bool check_allocations);
    ~address_space();

    /// The location of [address, address + nbytes) at `peer`. The rank must be valid. Errors
    /// explain why the address is invalid. May block for a reply of the peer at first use: for
    /// registered memory and, if the peer is not mapped here, asymmetric blocks.
    result<location> locate(world_rank peer, const void *address, std::size_t nbytes);

    /// Locates an address of this rank's device area at another rank, with the checks of locate().
    using device_locator =
        std::function<result<location>(world_rank peer, const void *address, std::size_t nbytes)>;
    /// Call before the first call of locate(). Without this call such addresses are errors.
    void set_device_locator(device_locator locate_there) {
        device_locator_ = std::move(locate_there);
    }

    /// The location of an address in the peer's slot, in the peer's address space. Without checks.
    [[nodiscard]] location location_at(world_rank peer, std::uint64_t address) const;

    struct block {
        void *address = nullptr;
        std::size_t nbytes =
            0; ///< up to the end of the allocation (symmetric: of the owner's copy)
    };
    /// The counterpart at `peer` of an own address, in the peer's address space.
    result<block> counterpart(world_rank peer, const void *address);

    /// Ranges that all ranks have registered together; locate() translates own addresses in them.
    [[nodiscard]] counterpart_table &counterparts() { return *counterparts_; }

    [[nodiscard]] ompx_addr_info_t describe(const void *address) const;
    [[nodiscard]] bool in_arena(const void *address) const {
        return reinterpret_cast<std::uintptr_t>(address) - arena_base_ < arena_span_;
    }
    /// Whether the address is in a rank's host segment, where DiOMP allocates and frees memory.
    [[nodiscard]] bool in_host_segment(const void *address) const {
        return in_arena(address) &&
               (reinterpret_cast<std::uintptr_t>(address) - arena_base_) % arena_.slot_bytes() <
                   arena_.usable_bytes();
    }
    /// Whether the peer, on another node, has the own slot, so that its addresses lie in the own
    /// slot.
    [[nodiscard]] bool shares_own_slot(world_rank peer) const {
        return arena_.share_slot(peer, self_);
    }
    /// Offset in this rank's segment, if the address lies there.
    [[nodiscard]] std::optional<std::uint64_t> own_offset(const void *address) const;
    /// Whether the address is in this rank's device area: the memory of its host devices.
    [[nodiscard]] bool in_own_device_area(const void *address) const {
        std::uint64_t const in_slot = reinterpret_cast<std::uintptr_t>(address) -
                                      reinterpret_cast<std::uintptr_t>(arena_.slot(self_));
        return in_slot >= arena_.device_offset() && in_slot < arena_.slot_bytes();
    }
    [[nodiscard]] pointer_cache_counts cache_counts() const;

private:
    /// Whether an address in the own segment stands for a counterpart at the peer.
    [[nodiscard]] bool has_counterpart(world_rank peer, std::uint64_t own_offset) const {
        return !shares_own_slot(peer) || own_offset < own_.symmetric_extent() ||
               own_.find_asymmetric(own_offset, peer).has_value();
    }
    result<location> locate_own(world_rank peer, std::uint64_t offset, std::size_t nbytes);
    result<location> locate_peer(world_rank peer, std::uint64_t address, std::size_t nbytes);
    result<location> locate_private(world_rank peer, std::uint64_t address, std::size_t nbytes);
    result<remote_block> fetch_remote_block(world_rank peer, const asymmetric_view &view);
    result<block> block_of_peer(world_rank peer, const void *address);
    status check_own_allocation(std::uint64_t offset, std::size_t nbytes) const;
    result<second_level_pointer> read_pointer(world_rank peer, std::uint64_t offset);
    /// Address of the peer's segment in every process that maps it.
    [[nodiscard]] std::uint64_t segment_of(world_rank peer) const {
        return reinterpret_cast<std::uint64_t>(arena_.slot(peer)) + internal_bytes;
    }

    const transport::arena &arena_;
    messaging::engine &engine_;
    segment &own_;
    directory &directory_;
    std::uintptr_t arena_base_;
    std::size_t arena_span_;
    world_rank self_;
    bool check_allocations_;
    device_locator device_locator_;
    std::unique_ptr<counterpart_table> counterparts_;
    std::atomic<std::uint64_t> pointers_fetched_{0};
    std::atomic<std::uint64_t> pointer_hits_{0};
};

} // namespace diomp::memory
