// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of other ranks' devices: what an own allocation or an address of the other rank means
// there.
#include "memory/memory.h"
#include "offload/alloc_directory.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/translation_errors.h"
#include "offload/remote_memory.h"
#include "offload/translator.h"
#include "transport/arena.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::offload {
namespace {

constexpr const char *same_order =
    "map the same variables in the same order on all ranks and call a barrier after it, or use "
    "ompx_target_alloc";

} // namespace

/// Whether a device address in the arena, or of a remote processor, is the peer's rather than one
/// of this rank. Addresses of ranks with the own slot lie in the own slot; own local memory has no
/// counterpart.
bool translator::is_of_peer(world_rank rank, const void *pointer) const {
    if (!space_.in_arena(pointer)) {
        return segments_.remote() != nullptr && table_.containing(pointer) == nullptr &&
               segments_.remote()->has(reinterpret_cast<std::uintptr_t>(pointer));
    }
    if (space_.own_offset(pointer)) {
        return false;
    }
    device_segment const *const around = table_.containing(pointer);
    if (around == nullptr || !space_.shares_own_slot(rank)) {
        return around == nullptr;
    }
    auto const own = around->find(*around->offset_of(pointer));
    return !own || (own->kind == OMPX_MEM_LOCAL && !own->by_openmp);
}

/// Blocks of an asymmetric allocation on devices begin at different offsets. If the peer has the
/// own slot, an address in the own block may therefore be in another block of the peer's.
status translator::check_meaning(world_rank rank, int device, const void *pointer,
                                 std::uint64_t counterpart) {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    if (!space_.shares_own_slot(rank) || counterpart == address || !space_.in_arena(pointer)) {
        return {};
    }
    auto other = directory_.find(rank, device, {key_kind::address, address});
    DIOMP_TRY(other);
    if (!other.value().what) {
        return {};
    }
    return error(OMPX_ERR_ADDRESS,
                 fmt::format("{} is in asymmetric memory of this rank and in other memory of rank "
                             "{}, which is on another node: its meaning is not clear",
                             pointer, rank.value()),
                 "use symmetric device memory for transfers between nodes");
}

result<remote_side> translator::locate_counterpart(world_rank rank, int device,
                                                   const device_segment &segment,
                                                   const device_allocation &own,
                                                   std::uint64_t offset, std::size_t nbytes) {
    std::uint64_t const inside = offset - own.offset;
    bool const asymmetric = own.kind == OMPX_MEM_ASYMMETRIC;
    allocation_key const key = segment.key_of(own);
    auto lookup =
        directory_.find(rank, device, key, asymmetric ? 0 : own.nbytes, device == segment.device());
    DIOMP_TRY(lookup);
    alloc_directory::lookup_result const &found_there = lookup.value();
    if (!found_there.what) {
        return error(OMPX_ERR_ADDRESS,
                     found_there.device_in_use
                         ? fmt::format("rank {} has nothing on device {} where this rank has {}",
                                       rank.value(), device, describe(own))
                         : fmt::format("rank {} has not used device {} yet", rank.value(), device),
                     same_order);
    }
    remote_allocation const &there = *found_there.what;
    if (!asymmetric &&
        (there.begins_at_key == 0 || there.nbytes != own.nbytes ||
         (!found_there.was_cached && !there.what.may_equal(identify(own.host, host_))))) {
        std::string const text = offload::describe(there.what);
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("on device {} rank {} has {} bytes at offset {}{} where this rank "
                                 "has {}",
                                 there.device, rank.value(), there.nbytes, there.offset,
                                 text.empty() ? "" : " (" + text + ")", describe(own)),
                     same_order);
    }
    directory_.cache(rank, device, key, found_there);
    std::uint64_t const left = there.nbytes - std::min(inside, there.nbytes);
    if (nbytes > left) {
        return past_end_error(fmt::format("rank {}'s allocation of {} bytes on device {}",
                                          rank.value(), there.nbytes, there.device),
                              left, nbytes);
    }
    if (there.held_by == memory_holder::remote_device) {
        return remote_side::on_service(there.device, there.base + inside);
    }
    if (there.held_by == memory_holder::accelerator) {
        return remote_side{
            {},
            {},
            nullptr,
            remote_device_memory{
                there.device, there.offset + inside, there.base + inside, there.by_network, false,
                there.session_index < 0 ? std::nullopt : std::optional<int>(there.session_index)}};
    }
    return remote_side{space_.location_at(rank, there.base + inside), {}, nullptr, {}};
}

result<remote_side> translator::locate_peer_address(world_rank rank, const void *pointer,
                                                    int device, std::size_t nbytes) {
    auto const address = reinterpret_cast<std::uintptr_t>(pointer);
    std::uint64_t const from_slot = address - reinterpret_cast<std::uintptr_t>(arena_.slot(rank));
    if (space_.in_arena(pointer) && from_slot >= arena_.slot_bytes()) {
        return error(
            OMPX_ERR_ADDRESS,
            fmt::format("{} is in the memory of another rank than rank {}", pointer, rank.value()),
            "pass an address of the rank that the call names, or of this rank");
    }
    allocation_key const key{key_kind::address, address};
    auto lookup = directory_.find(rank, device, key);
    DIOMP_TRY(lookup);
    if (!lookup.value().what) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("{} is in no allocation of rank {} on device {}", pointer,
                                 rank.value(), device),
                     "the memory was freed or unmapped, or the address or device is wrong");
    }
    directory_.cache(rank, device, key, lookup.value());
    remote_allocation const &there = *lookup.value().what;
    std::uint64_t const left =
        there.base + there.nbytes - std::min(address, there.base + there.nbytes);
    if (nbytes > left) {
        return past_end_error(fmt::format("rank {}'s allocation of {} bytes on device {}",
                                          rank.value(), there.nbytes, device),
                              left, nbytes);
    }
    return there.held_by == memory_holder::remote_device
               ? remote_side::on_service(there.device, address)
               : remote_side{space_.location_at(rank, address), {}, nullptr, {}};
}

} // namespace diomp::offload
