// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/counterparts.h"
#include "memory/directory.h"
#include "memory/memory.h"
#include "messaging/pooled_completion.h"
#include "transport/conduit.h"

#include <fmt/core.h>

namespace diomp::memory {
namespace {

error no_allocation_error() {
    return {OMPX_ERR_ADDRESS, "the address is in no allocation",
            "the memory was freed, or the address is wrong"};
}

error past_end_error(std::string what, std::uint64_t available, std::size_t nbytes) {
    return {OMPX_ERR_RANGE,
            fmt::format("the {} bytes run past the end of {}, which has {} bytes from there on",
                        nbytes, what, available),
            "check the size and the offset of the transfer"};
}

} // namespace

address_space::address_space(world_rank self, const transport::arena &arena,
                             messaging::engine &engine, segment &own, directory &directory,
                             bool check_allocations)
    : arena_(arena), engine_(engine), own_(own), directory_(directory), arena_base_(arena.base()),
      arena_span_(arena.span_bytes()), self_(self), check_allocations_(check_allocations),
      counterparts_(std::make_unique<counterpart_table>()) {}

address_space::~address_space() = default;

location address_space::location_at(world_rank peer, std::uint64_t address) const {
    std::byte *const slot = engine_.transport().direct_base(peer);
    if (slot == nullptr) {
        return {nullptr, address, true};
    }
    return {slot + (address - reinterpret_cast<std::uint64_t>(arena_.slot(peer))), address, true};
}

std::optional<std::uint64_t> address_space::own_offset(const void *address) const {
    std::uint64_t const offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(own_.base());
    return offset < own_.size_bytes() ? std::optional(offset) : std::nullopt;
}

result<location> address_space::locate(world_rank peer, const void *address, std::size_t nbytes) {
    if (auto const offset = own_offset(address); offset && has_counterpart(peer, *offset)) {
        return locate_own(peer, *offset, nbytes);
    }
    if (device_locator_ && in_own_device_area(address)) {
        return device_locator_(peer, address, nbytes);
    }
    if (in_arena(address)) {
        return locate_peer(peer, reinterpret_cast<std::uintptr_t>(address), nbytes);
    }
    auto const private_address = reinterpret_cast<std::uintptr_t>(address);
    auto const counterpart = counterparts_->find(peer, private_address);
    auto const moved = counterpart ? counterpart : counterparts_->find_moved(peer, private_address);
    if (moved && moved->offset) {
        if (nbytes > moved->nbytes) {
            return past_end_error("the symmetric range", moved->nbytes, nbytes);
        }
        return location_at(peer, segment_of(peer) + *moved->offset);
    }
    return locate_private(peer, counterpart ? counterpart->address : private_address, nbytes);
}

result<location> address_space::locate_own(world_rank peer, std::uint64_t offset,
                                           std::size_t nbytes) {
    bool const symmetric = offset < own_.symmetric_extent();
    if (check_allocations_) {
        DIOMP_TRY(check_own_allocation(offset, symmetric || peer == self_ ? nbytes : 0));
    }
    if (symmetric || peer == self_) {
        // Not for asymmetric memory: the peer's block may be longer than the space after this one.
        if (nbytes > own_.size_bytes() - offset) {
            return past_end_error("the segment", own_.size_bytes() - offset, nbytes);
        }
        if (symmetric && nbytes > own_.symmetric_extent() - offset) {
            return past_end_error("symmetric memory", own_.symmetric_extent() - offset, nbytes);
        }
        return location_at(peer, segment_of(peer) + offset);
    }
    auto const view = own_.find_asymmetric(offset, peer);
    if (!view && !own_.find(offset)) {
        return no_allocation_error();
    }
    if (!view) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the address is in local memory of this rank, rank {}: rank {} "
                                 "has no counterpart of it",
                                 self_.value(), peer.value()),
                     "use symmetric or asymmetric memory, or the address that the other rank's own "
                     "allocation returned");
    }
    auto block = fetch_remote_block(peer, *view);
    DIOMP_TRY(block);
    std::uint64_t const inside = offset - view->offset;
    if (inside > block.value().nbytes || nbytes > block.value().nbytes - inside) {
        return past_end_error(fmt::format("rank {}'s part of the asymmetric allocation ({} bytes)",
                                          peer.value(), block.value().nbytes),
                              block.value().nbytes - std::min(inside, block.value().nbytes),
                              nbytes);
    }
    return location_at(peer, block.value().base + inside);
}

result<second_level_pointer> address_space::read_pointer(world_rank peer, std::uint64_t offset) {
    second_level_pointer read;
    location const there = location_at(peer, segment_of(peer) + offset);
    if (there.direct != nullptr) {
        std::memcpy(&read, there.direct, sizeof(read));
        return read;
    }
    messaging::pooled_completion fetching;
    static_assert(sizeof(read) <= messaging::pooled_completion::buffer_bytes);
    DIOMP_TRY(engine_.transport().rma()->get(peer, there.remote_address, fetching.buffer().data(),
                                             sizeof(read), fetching.count()));
    DIOMP_TRY(fetching.wait(engine_, [peer] {
        return fmt::format("waiting for the second-level pointer of rank {}", peer.value());
    }));
    std::memcpy(&read, fetching.buffer().data(), sizeof(read));
    return read;
}

result<remote_block> address_space::fetch_remote_block(world_rank peer,
                                                       const asymmetric_view &view) {
    if (view.remote) {
        pointer_hits_.fetch_add(1, std::memory_order_relaxed);
        return *view.remote;
    }
    auto fetched = read_pointer(peer, view.pointer_offset);
    DIOMP_TRY(fetched);
    second_level_pointer const &read = fetched.value();
    if (read.check != read.expected_check() || read.generation == 0) {
        return error(
            OMPX_ERR_ADDRESS,
            fmt::format("rank {}'s second-level pointer of this asymmetric allocation is not valid",
                        peer.value()),
            "the allocation was freed, or a transfer past the end of symmetric memory overwrote "
            "the pointer");
    }
    pointers_fetched_.fetch_add(1, std::memory_order_relaxed);
    remote_block const block{read.base, read.nbytes, read.generation};
    own_.cache_remote(view.offset, peer, block);
    return block;
}

result<location> address_space::locate_peer(world_rank peer, std::uint64_t address,
                                            std::size_t nbytes) {
    std::uint64_t const from_base = address - arena_base_;
    std::uint64_t const slot_number = from_base / arena_.slot_bytes();
    std::uint64_t const in_slot = from_base % arena_.slot_bytes();
    if (slot_number != static_cast<std::uint64_t>(arena_.slot_number(peer))) {
        auto const owner = arena_.rank_here(slot_number);
        return error(
            OMPX_ERR_ADDRESS,
            fmt::format("the address is in the segment of {}, not of rank {}",
                        owner ? fmt::format("rank {}", owner->value()) : "no rank of this node",
                        peer.value()),
            "pass an address of the rank that the call names, or one's own symmetric address");
    }
    if (in_slot < internal_bytes || in_slot >= arena_.usable_bytes()) {
        return error(
            OMPX_ERR_ADDRESS,
            fmt::format("the address is not in the part of rank {}'s segment that programs use",
                        peer.value()));
    }
    if (nbytes > arena_.usable_bytes() - in_slot) {
        return past_end_error(fmt::format("rank {}'s segment", peer.value()),
                              arena_.usable_bytes() - in_slot, nbytes);
    }
    if (check_allocations_) {
        auto found = directory_.find_allocation(peer, address);
        DIOMP_TRY(found);
        if (!found.value()) {
            return error(OMPX_ERR_ADDRESS,
                         fmt::format("the address is in no allocation of rank {}", peer.value()),
                         "the memory was freed, or the address is wrong");
        }
        std::uint64_t const end = found.value()->base + found.value()->nbytes;
        if (address + nbytes > end) {
            return past_end_error(fmt::format("the allocation of rank {} at {:#x}", peer.value(),
                                              found.value()->base),
                                  end - std::min(address, end), nbytes);
        }
    }
    return location_at(peer, address);
}

result<location> address_space::locate_private(world_rank peer, std::uint64_t address,
                                               std::size_t nbytes) {
    auto found = directory_.find_registered(peer, address, nbytes);
    DIOMP_TRY(found);
    if (!found.value()) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the address is outside the global address space: in no segment, "
                                 "and in no range that rank {} "
                                 "has registered",
                                 peer.value()),
                     "allocate with a DiOMP allocator, or call ompx_register on the owner");
    }
    std::uint64_t const left = found.value()->base + found.value()->nbytes - address;
    if (nbytes > left) {
        return past_end_error(fmt::format("the range registered by rank {} at {:#x}", peer.value(),
                                          found.value()->base),
                              left, nbytes);
    }
    return location{peer == self_ ? reinterpret_cast<std::byte *>(address) : nullptr, address,
                    false};
}

status address_space::check_own_allocation(std::uint64_t offset, std::size_t nbytes) const {
    auto const found = own_.find(offset);
    if (!found) {
        return no_allocation_error();
    }
    std::uint64_t const inside = offset - found->offset;
    if (inside > found->nbytes || nbytes > found->nbytes - inside) {
        return past_end_error(fmt::format("the allocation of {} bytes", found->nbytes),
                              found->nbytes - std::min<std::uint64_t>(inside, found->nbytes),
                              nbytes);
    }
    return {};
}

result<address_space::block> address_space::counterpart(world_rank peer, const void *address) {
    auto const offset = own_offset(address);
    if (auto const there = counterparts_->find(peer, reinterpret_cast<std::uintptr_t>(address))) {
        return block{reinterpret_cast<void *>(there->address), there->nbytes};
    }
    if (!offset || !has_counterpart(peer, *offset)) {
        return block_of_peer(peer, address);
    }
    auto const own = own_.find(*offset);
    if (!own) {
        return no_allocation_error();
    }
    std::uint64_t const inside = *offset - own->offset;
    std::size_t const left = own->nbytes - std::min<std::uint64_t>(inside, own->nbytes);
    if (peer == self_) {
        return block{const_cast<void *>(address), left};
    }
    if (own->kind == OMPX_MEM_SYMMETRIC) {
        // The peer's address, at which every process that maps the memory sees it.
        return block{reinterpret_cast<void *>(segment_of(peer) + *offset), left};
    }
    auto const view = own_.find_asymmetric(*offset, peer);
    if (own->kind != OMPX_MEM_ASYMMETRIC || !view) {
        return error(
            OMPX_ERR_ADDRESS,
            fmt::format(
                "the address is in local memory of this rank: rank {} has no counterpart of it",
                peer.value()),
            "use symmetric or asymmetric memory");
    }
    auto remote = fetch_remote_block(peer, *view);
    DIOMP_TRY(remote);
    if (inside > remote.value().nbytes) {
        return past_end_error(
            fmt::format("rank {}'s part of the asymmetric allocation", peer.value()),
            remote.value().nbytes, inside);
    }
    return block{reinterpret_cast<void *>(remote.value().base + inside),
                 remote.value().nbytes - inside};
}

/// An address of another rank: valid if it is the peer's.
result<address_space::block> address_space::block_of_peer(world_rank peer, const void *address) {
    auto located = locate(peer, address, 0);
    DIOMP_TRY(located);
    auto const value = reinterpret_cast<std::uintptr_t>(address);
    if (peer == self_) {
        return block{const_cast<void *>(address), describe(address).nbytes};
    }
    auto found = in_arena(address) ? directory_.find_allocation(peer, value)
                                   : directory_.find_registered(peer, value, 0);
    DIOMP_TRY(found);
    auto const &around = found.value();
    return block{const_cast<void *>(address),
                 around ? static_cast<std::size_t>(around->base + around->nbytes - value) : 0};
}

ompx_addr_info_t address_space::describe(const void *address) const {
    ompx_addr_info_t info{};
    info.rank = -1;
    info.kind = OMPX_MEM_NONE;
    if (auto const offset = own_offset(address)) {
        info.offset = *offset;
        info.rank = self_.value();
        if (auto const found = own_.find(*offset)) {
            info.kind = found->kind;
            info.base = own_.base() + found->offset;
            info.nbytes = found->nbytes;
        }
    } else if (in_arena(address)) {
        std::uint64_t const from_base = reinterpret_cast<std::uintptr_t>(address) - arena_base_;
        std::uint64_t const in_slot = from_base % arena_.slot_bytes();
        auto const owner = arena_.rank_here(from_base / arena_.slot_bytes());
        if (owner && in_slot >= internal_bytes && in_slot < arena_.usable_bytes()) {
            info.rank = owner->value();
            info.offset = in_slot - internal_bytes;
            auto found = const_cast<directory &>(directory_)
                             .find_allocation(world_rank{info.rank},
                                              reinterpret_cast<std::uintptr_t>(address));
            if (found.ok() && found.value()) {
                info.kind = found.value()->kind;
                info.base = reinterpret_cast<void *>(found.value()->base);
                info.nbytes = found.value()->nbytes;
            }
        }
    } else if (auto const range = directory_.find_own(reinterpret_cast<std::uintptr_t>(address))) {
        info.rank = self_.value();
        info.kind = OMPX_MEM_REGISTERED;
        info.base = reinterpret_cast<void *>(range->base);
        info.nbytes = range->nbytes;
        info.offset = reinterpret_cast<std::uintptr_t>(address) - range->base;
    }
    return info;
}

pointer_cache_counts address_space::cache_counts() const {
    return {pointers_fetched_.load(std::memory_order_relaxed),
            pointer_hits_.load(std::memory_order_relaxed)};
}

} // namespace diomp::memory
