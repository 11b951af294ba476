// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/memory.h"

#include <GASPI.h>
#include <GASPI_Ext.h>

namespace diomp::transport::gaspi {
namespace {

/// The first page of the address space is never mapped; addresses above the end are the kernel's.
constexpr std::uint64_t anywhere_begin = 4096;
constexpr std::uint64_t anywhere_end = std::uint64_t{1} << 47;

} // namespace

result<std::unique_ptr<memory>> memory::create(const arena &arena, world_rank self) {
    gaspi_network_t network = GASPI_ETHERNET;
    gaspi_network_type(&network);
    auto work = work_segment::map(arena.tables().ranks.size(), self);
    DIOMP_TRY(work);
    std::unique_ptr<memory> made(new memory(arena, self, work.take()));
    made->is_tcp_ = network == GASPI_ETHERNET;
    DIOMP_TRY(launch::gaspi::register_segment(segment::arena, arena.slot(self),
                                              arena.device_offset() + arena.device_bytes()));
    std::span<std::byte> const mapped = made->work_.bytes();
    DIOMP_TRY(launch::gaspi::register_segment(segment::work, mapped.data(), mapped.size()));
    if (made->is_tcp_) {
        // Sockets accept any address: the whole address space is a segment of its own, which is not
        // announced to other ranks.
        made->reaches_anywhere_ =
            gaspi_segment_bind(static_cast<gaspi_segment_id_t>(segment::anywhere),
                               reinterpret_cast<gaspi_pointer_t>(anywhere_begin),
                               anywhere_end - anywhere_begin, 0) == GASPI_SUCCESS;
    }
    return made;
}

bool memory::reaches(const void *at, std::size_t nbytes) const {
    auto const begin = reinterpret_cast<std::uint64_t>(at);
    if (reaches_anywhere_) {
        return begin >= anywhere_begin && begin + nbytes <= anywhere_end;
    }
    auto const slot = reinterpret_cast<std::uint64_t>(arena_.slot(self_));
    return begin >= slot && begin + nbytes <= slot + arena_.device_offset() + arena_.device_bytes();
}

location memory::location_of(const void *at) const {
    auto const address = reinterpret_cast<std::uint64_t>(at);
    auto const work = reinterpret_cast<std::uint64_t>(work_.bytes().data());
    if (address >= work && address < work + work_.bytes().size()) {
        return {segment::work, address - work};
    }
    if (reaches_anywhere_) {
        return {segment::anywhere, address - anywhere_begin};
    }
    return {segment::arena, address - reinterpret_cast<std::uint64_t>(arena_.slot(self_))};
}

std::uint64_t memory::offset_in_slot(world_rank owner, std::uint64_t address) const {
    return address - reinterpret_cast<std::uint64_t>(arena_.slot(owner));
}

} // namespace diomp::transport::gaspi
