// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/work_segment.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <sys/mman.h>

namespace diomp::transport::gaspi {
namespace {

constexpr std::size_t word_bytes = 64; // a cache line each
constexpr std::size_t num_words = 1024;
constexpr std::size_t num_small_blocks = 512;
constexpr std::size_t num_large_blocks = 16;
constexpr std::size_t words_offset = 4096;
constexpr std::size_t small_offset = words_offset + num_words * word_bytes;
constexpr std::size_t large_offset = small_offset + num_small_blocks * small_bytes;
constexpr std::size_t rings_offset = large_offset + num_large_blocks * large_block_bytes;

/// Total size of one direction's rings, unless each would be smaller than min_ring_bytes.
constexpr std::size_t all_rings_bytes = std::size_t{16} << 20;
constexpr std::size_t min_ring_bytes = 4096;
constexpr std::size_t max_ring_bytes = 65536;

/// Blocks of a pool, in descending order, so that the lowest is used first.
std::vector<std::byte *> blocks_at(std::byte *begin, std::size_t count, std::size_t nbytes) {
    std::vector<std::byte *> blocks;
    for (std::size_t i = count; i-- > 0;) {
        blocks.push_back(begin + i * nbytes);
    }
    return blocks;
}

} // namespace

work_segment::work_segment(std::size_t num_ranks, world_rank self)
    : self_(self), ring_bytes_(std::clamp(std::bit_floor(all_rings_bytes / num_ranks),
                                          min_ring_bytes, max_ring_bytes)),
      outgoing_(rings_offset), incoming_(outgoing_ + num_ranks * ring_bytes_) {}

result<work_segment> work_segment::map(std::size_t num_ranks, world_rank self) {
    work_segment made(num_ranks, self);
    std::size_t const nbytes = made.incoming_ + num_ranks * made.ring_bytes_;
    void *const mapped = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        return system_error("mapping memory for GPI-2", errno);
    }
    auto *const begin = static_cast<std::byte *>(mapped);
    made.bytes_ = {begin, nbytes};
    new (begin + one_offset) std::uint32_t{1};
    made.words_ = blocks_at(begin + words_offset, num_words, word_bytes);
    made.small_blocks_ = blocks_at(begin + small_offset, num_small_blocks, small_bytes);
    made.large_blocks_ = blocks_at(begin + large_offset, num_large_blocks, large_block_bytes);
    return made;
}

std::byte *work_segment::take(std::vector<std::byte *> &pool) {
    if (pool.empty()) {
        return nullptr;
    }
    std::byte *const taken = pool.back();
    pool.pop_back();
    return taken;
}

void work_segment::release_block(std::byte *block) {
    bool const large = block >= bytes_.data() + large_offset;
    (large ? large_blocks_ : small_blocks_).push_back(block);
}

std::atomic<std::uint32_t> *work_segment::acquire_word() {
    std::byte *const taken = take(words_);
    return taken == nullptr ? nullptr : new (taken) std::atomic<std::uint32_t>{0};
}

} // namespace diomp::transport::gaspi
