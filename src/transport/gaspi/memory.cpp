// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/memory.h"

#include <GASPI.h>
#include <GASPI_Ext.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <sys/mman.h>

namespace diomp::transport::gaspi {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t word_bytes = 64; // a cache line each
constexpr std::size_t num_words = 1024;
constexpr std::size_t num_small_blocks = 512;
constexpr std::size_t num_large_blocks = 16;
constexpr std::size_t words_offset = page;
constexpr std::size_t small_offset = words_offset + num_words * word_bytes;

/// Total size of one direction's rings, unless each would be smaller than min_ring_bytes.
constexpr std::size_t all_rings_bytes = std::size_t{16} << 20;
constexpr std::size_t min_ring_bytes = 4096;
constexpr std::size_t max_ring_bytes = 65536;

/// The first page of the address space is never mapped; addresses above the end are the kernel's.
constexpr std::uint64_t anywhere_begin = page;
constexpr std::uint64_t anywhere_end = std::uint64_t{1} << 47;

} // namespace

result<std::unique_ptr<memory>> memory::create(const arena &arena, world_rank self,
                                               bool stage_everything) {
    std::unique_ptr<memory> made(new memory(arena, self));
    gaspi_network_t network = GASPI_ETHERNET;
    gaspi_network_type(&network);
    made->is_tcp_ = network == GASPI_ETHERNET;
    DIOMP_TRY(made->map());
    DIOMP_TRY(launch::gaspi::register_segment(segment::arena, arena.slot(self),
                                              arena.device_offset() + arena.device_bytes()));
    DIOMP_TRY(launch::gaspi::register_segment(segment::work, made->work_, made->work_bytes_));
    if (made->is_tcp_ && !stage_everything) {
        // Sockets accept any address: the whole address space is a segment of its own, which is not
        // announced to other ranks.
        made->reaches_anywhere_ =
            gaspi_segment_bind(static_cast<gaspi_segment_id_t>(segment::anywhere),
                               reinterpret_cast<gaspi_pointer_t>(anywhere_begin),
                               anywhere_end - anywhere_begin, 0) == GASPI_SUCCESS;
    }
    return made;
}

status memory::map() {
    auto const num_ranks = static_cast<std::size_t>(arena_.num_slots());
    ring_bytes_ =
        std::clamp(std::bit_floor(all_rings_bytes / num_ranks), min_ring_bytes, max_ring_bytes);
    large_offset_ = small_offset + num_small_blocks * small_bytes;
    outgoing_ = large_offset_ + num_large_blocks * large_block_bytes;
    incoming_ = outgoing_ + num_ranks * ring_bytes_;
    work_bytes_ = incoming_ + num_ranks * ring_bytes_;
    void *const mapped = ::mmap(nullptr, work_bytes_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        return system_error("mapping memory for GPI-2", errno);
    }
    work_ = static_cast<std::byte *>(mapped);
    new (work_ + one_offset) std::uint32_t{1};
    for (std::size_t i = num_words; i-- > 0;) {
        words_.push_back(work_ + words_offset + i * word_bytes);
    }
    for (std::size_t i = num_small_blocks; i-- > 0;) {
        small_blocks_.push_back(work_ + small_offset + i * small_bytes);
    }
    for (std::size_t i = num_large_blocks; i-- > 0;) {
        large_blocks_.push_back(work_ + large_offset_ + i * large_block_bytes);
    }
    return {};
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
    auto const work = reinterpret_cast<std::uint64_t>(work_);
    if (address >= work && address < work + work_bytes_) {
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

std::byte *memory::take(std::vector<std::byte *> &pool) {
    if (pool.empty()) {
        return nullptr;
    }
    std::byte *const taken = pool.back();
    pool.pop_back();
    return taken;
}

void memory::release_block(std::byte *block) {
    bool const large = block >= work_ + large_offset_;
    (large ? large_blocks_ : small_blocks_).push_back(block);
}

std::atomic<std::uint32_t> *memory::acquire_word() {
    std::byte *const taken = take(words_);
    return taken == nullptr ? nullptr : new (taken) std::atomic<std::uint32_t>{0};
}

} // namespace diomp::transport::gaspi
