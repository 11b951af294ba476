// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/segment.h"

#include "base/assert.h"
#include "base/panic.h"
#include "base/sizes.h"
#include "memory/internal/alike_ranges.h"
#include "memory/internal/page_return.h"
#include "memory/internal/shadow.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unistd.h>

namespace diomp::memory {

segment::segment(const transport::arena &arena, world_rank owner, local_rank local_index,
                 std::size_t core_bytes)
    : arena_(arena), local_index_(local_index), base_(arena.slot(owner) + internal_bytes),
      size_bytes_(arena.usable_bytes() - internal_bytes),
      symmetric_(heap::direction::from_front, size_bytes_),
      private_(heap::direction::from_end, size_bytes_),
      alike_(arena.shares_slots() ? std::make_unique<alike_ranges>(private_) : nullptr),
      internal_(heap::direction::from_front, internal_bytes - shadow::front_guard_bytes),
      shadow_(std::make_unique<shadow>(base_, size_bytes_)), core_{core_bytes, 0, 0} {
    auto const published =
        internal_.allocate(sizeof(published_state), cache_line_bytes, internal_bytes);
    if (!published || *published != 0) {
        panic("the published state must lie at the start of the slot");
    }
}

segment::~segment() = default;

/// Large blocks get whole pages, since pages without other data can be pinned.
std::optional<std::uint64_t> segment::allocate_from(heap &from, std::size_t nbytes,
                                                    std::size_t alignment,
                                                    std::uint64_t limit) const {
    std::uint64_t const redzone_bytes = arena_.has_redzones() ? redzone_of(nbytes) : 0;
    return nbytes < large_bytes
               ? from.allocate(nbytes, alignment, limit, heap::granule_bytes, redzone_bytes)
               : from.allocate(nbytes, std::max(alignment, page_bytes), limit, page_bytes,
                               redzone_bytes);
}

void segment::unpoison(std::uint64_t offset, std::size_t nbytes) {
    shadow_->allocated(offset, nbytes, symmetric_.extent(), private_.extent());
}

error segment::out_of_memory(const char *kind, std::size_t nbytes,
                             std::uint64_t largest_free) const {
    std::uint64_t const used = symmetric_.used_bytes() + private_.used_bytes();
    return {OMPX_ERR_NOMEM,
            fmt::format("no room for {} bytes ({}) of {} memory: the segment has {}, of which {} "
                        "are used and {} free, the "
                        "largest free block is {}",
                        nbytes, format_size(nbytes), kind, format_size(size_bytes_),
                        format_size(used), format_size(size_bytes_ - used),
                        format_size(largest_free)),
            transport::segment_size_remedy("DIOMP_SEGMENT_SIZE", nbytes, size_bytes_)};
}

/// Both heaps' ranges grow in steps, so that few allocations cost a system call.
void segment::extend_core_dump() {
    DIOMP_ASSERT(symmetric_.extent() + private_.extent() <= size_bytes_,
                 "the two heaps do not overlap");
    constexpr std::uint64_t step = std::uint64_t{1} << 20;
    auto const grow = [this](std::uint64_t known, std::uint64_t wanted) {
        if (wanted <= known || core_.bytes_left == 0) {
            return known;
        }
        std::uint64_t const goal =
            std::min<std::uint64_t>((wanted + step - 1) / step * step, size_bytes_);
        std::uint64_t const grown = std::min<std::uint64_t>(goal - known, core_.bytes_left);
        core_.bytes_left -= grown;
        return known + grown;
    };
    if (std::uint64_t const next = grow(core_.front, symmetric_.extent()); next > core_.front) {
        arena_.allow_in_core(local_index_, internal_bytes + core_.front, next - core_.front);
        core_.front = next;
    }
    if (std::uint64_t const next = grow(core_.end, private_.extent()); next > core_.end) {
        arena_.allow_in_core(local_index_, internal_bytes + size_bytes_ - next, next - core_.end);
        core_.end = next;
    }
}

result<std::uint64_t> segment::allocate_symmetric(std::size_t nbytes, std::size_t alignment) {
    std::lock_guard const guard(mutex_);
    auto const offset = allocate_from(symmetric_, nbytes, alignment, front_limit());
    if (!offset) {
        return out_of_memory("symmetric", nbytes, symmetric_.largest_free(front_limit()));
    }
    symmetric_extent_.store(symmetric_.extent(), std::memory_order_relaxed);
    extend_core_dump();
    unpoison(*offset, nbytes);
    return *offset;
}

result<std::uint64_t> segment::allocate_local(std::size_t nbytes, std::size_t alignment) {
    std::lock_guard const guard(mutex_);
    auto const offset = allocate_from(private_, nbytes, alignment, end_limit());
    if (!offset) {
        return out_of_memory("local", nbytes, private_.largest_free(end_limit()));
    }
    extend_core_dump();
    unpoison(*offset, nbytes);
    return *offset;
}

result<std::uint64_t> segment::allocate_asymmetric(std::size_t nbytes, std::size_t alignment) {
    std::lock_guard const guard(mutex_);
    DIOMP_ASSERT(alike_ == nullptr, "blocks need not be alike");
    auto pointer = allocate_pointer();
    DIOMP_TRY(pointer);
    auto const block = allocate_from(private_, nbytes, alignment, end_limit());
    if (!block) {
        error failure = out_of_memory("asymmetric", nbytes, private_.largest_free(end_limit()));
        symmetric_.release(pointer.value());
        return failure;
    }
    write_pointer(pointer.value(), *block, nbytes);
    return *block;
}

result<std::uint64_t> segment::allocate_alike(std::size_t nbytes, std::size_t alignment,
                                              const alike_bounds &of_all) {
    std::lock_guard const guard(mutex_);
    auto pointer = allocate_pointer();
    DIOMP_TRY(pointer);
    bool const is_large = of_all.max_bytes >= large_bytes;
    std::uint64_t const redzone_bytes = arena_.has_redzones() ? redzone_of(of_all.max_bytes) : 0;
    auto const block =
        alike_->allocate({nbytes, of_all.max_bytes + redzone_bytes, of_all.extent_bytes,
                          is_large ? std::max(alignment, page_bytes) : alignment,
                          is_large ? page_bytes : heap::granule_bytes},
                         end_limit());
    if (!block) {
        bool const may_retry = private_.extent() > of_all.extent_bytes;
        error failure =
            may_retry
                ? error(OMPX_ERR_STATE, "another thread has allocated at the same time")
                : out_of_memory("asymmetric", of_all.max_bytes, private_.largest_free(end_limit()));
        symmetric_.release(pointer.value());
        return failure;
    }
    write_pointer(pointer.value(), *block, nbytes);
    return *block;
}

std::uint64_t segment::private_extent() const {
    std::shared_lock const guard(mutex_);
    return private_.extent();
}

result<std::uint64_t> segment::allocate_pointer() {
    auto const pointer =
        allocate_from(symmetric_, sizeof(second_level_pointer), cache_line_bytes, front_limit());
    return pointer ? result<std::uint64_t>(*pointer)
                   : out_of_memory("symmetric", sizeof(second_level_pointer),
                                   symmetric_.largest_free(front_limit()));
}

void segment::write_pointer(std::uint64_t pointer, std::uint64_t block, std::size_t nbytes) {
    symmetric_extent_.store(symmetric_.extent(), std::memory_order_relaxed);
    extend_core_dump();
    unpoison(pointer, sizeof(second_level_pointer));
    unpoison(block, nbytes);
    auto *written = new (base_ + pointer) second_level_pointer;
    written->base = reinterpret_cast<std::uint64_t>(base_ + block);
    written->nbytes = nbytes;
    written->generation = next_generation_++;
    written->check = written->expected_check();
    asymmetric_.emplace(block, asymmetric_record{nbytes, pointer, {}});
}

std::optional<allocation> segment::find(std::uint64_t offset) const {
    std::shared_lock const guard(mutex_);
    if (auto const block = symmetric_.find(offset)) {
        return allocation{OMPX_MEM_SYMMETRIC, block->offset, block->nbytes};
    }
    auto const block = private_.find(offset);
    if (block && (alike_ == nullptr || !alike_->is_free(block->offset))) {
        return allocation{asymmetric_.contains(block->offset) ? OMPX_MEM_ASYMMETRIC
                                                              : OMPX_MEM_LOCAL,
                          block->offset, block->nbytes};
    }
    return std::nullopt;
}

std::optional<std::uint64_t> segment::pointer_of(std::uint64_t offset) const {
    std::shared_lock const guard(mutex_);
    auto const found = asymmetric_.find(offset);
    return found == asymmetric_.end() ? std::nullopt : std::optional(found->second.pointer_offset);
}

void segment::release(std::uint64_t offset) {
    if (before_release_) {
        before_release_(offset);
    }
    std::lock_guard const guard(mutex_);
    if (auto const block = symmetric_.release(offset, front_limit())) {
        shadow_->released(offset, block->reserved);
        return_pages(*block);
    } else if (auto const found = asymmetric_.find(offset); found != asymmetric_.end()) {
        // Later reads of the second-level pointer must find it invalid.
        *reinterpret_cast<second_level_pointer *>(base_ + found->second.pointer_offset) = {};
        if (auto const pointer = symmetric_.release(found->second.pointer_offset)) {
            shadow_->released(pointer->offset, pointer->reserved);
        }
        DIOMP_ASSERT(num_cached_remote_ >= found->second.remote.size(),
                     "every cached block is counted");
        num_cached_remote_ -= found->second.remote.size();
        asymmetric_.erase(found);
    }
    symmetric_extent_.store(symmetric_.extent(), std::memory_order_relaxed);
    auto const known = private_.find(offset);
    if (alike_ != nullptr &&
        alike_->release(offset, end_limit(), [this](auto &freed) { return_pages(freed); })) {
        shadow_->released(offset, known->nbytes);
        return;
    }
    if (auto const block = private_.release(offset, end_limit())) {
        shadow_->released(offset, block->reserved);
        return_pages(*block);
    }
}

void segment::return_pages(const heap::released_block &block) const {
    // Returning small blocks would cost a system call and a page fault each time they are reused.
    auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    if (block.reserved < page) {
        return;
    }
    page_range const pages = pages_to_release(block, page);
    if (!pages.empty()) {
        arena_.release_pages(local_index_, internal_bytes + pages.begin, pages.end - pages.begin);
    }
}

std::optional<asymmetric_view> segment::find_asymmetric(std::uint64_t offset,
                                                        world_rank peer) const {
    std::shared_lock const guard(mutex_);
    auto found = asymmetric_.upper_bound(offset);
    if (found == asymmetric_.begin()) {
        return std::nullopt;
    }
    --found;
    // One past the end still belongs to the block: a zero-length transfer there is valid. If
    // another block begins there, that one is meant, and not the other rank's longer block.
    std::uint64_t const inside = offset - found->first;
    if (inside > found->second.nbytes) {
        return std::nullopt;
    }
    if (inside == found->second.nbytes) {
        auto const there = private_.find(offset);
        bool const is_block = there && (alike_ == nullptr || !alike_->is_free(there->offset));
        if (is_block && there->offset != found->first) {
            return std::nullopt;
        }
    }
    asymmetric_view view{found->first, found->second.nbytes, found->second.pointer_offset,
                         std::nullopt};
    if (auto const known = found->second.remote.find(peer); known != found->second.remote.end()) {
        view.remote = known->second;
    }
    return view;
}

void segment::cache_remote(std::uint64_t offset, world_rank peer, const remote_block &block) {
    std::lock_guard const guard(mutex_);
    if (num_cached_remote_ >= max_cached_remote) {
        for (auto &[start, record] : asymmetric_) {
            record.remote.clear();
        }
        num_cached_remote_ = 0;
    }
    auto const found = asymmetric_.find(offset);
    if (found != asymmetric_.end() && found->second.remote.insert_or_assign(peer, block).second) {
        ++num_cached_remote_;
    }
}

ompx_segment_info_t segment::info() const {
    ompx_segment_info_t info{};
    info.base = base_;
    info.nbytes = size_bytes_;
    {
        std::shared_lock const guard(mutex_);
        info.symmetric_used = symmetric_.used_bytes();
        std::uint64_t const reserved = alike_ == nullptr ? 0 : alike_->free_bytes();
        std::size_t const num_reserved = alike_ == nullptr ? 0 : alike_->num_free();
        info.local_used = private_.used_bytes() - reserved;
        info.largest_free =
            std::max(symmetric_.largest_free(front_limit()), private_.largest_free(end_limit()));
        info.num_allocations = symmetric_.num_blocks() + private_.num_blocks() - num_reserved;
    }
    info.resident = arena_.resident_bytes(local_index_);
    return info;
}

std::optional<std::uint64_t> segment::allocate_internal(std::size_t nbytes, std::size_t spare) {
    std::lock_guard const guard(mutex_);
    auto const offset = internal_.allocate(nbytes, cache_line_bytes, internal_bytes);
    if (!offset || spare == 0) {
        return offset;
    }
    auto const left = internal_.allocate(spare, cache_line_bytes, internal_bytes);
    internal_.release(left ? *left : *offset); // neither has been written
    return left ? offset : std::nullopt;
}

void segment::release_internal(std::uint64_t slot_offset) {
    std::lock_guard const guard(mutex_);
    if (auto const block = internal_.release(slot_offset)) {
        arena_.release_pages(local_index_, block->offset, block->reserved);
    }
}

} // namespace diomp::memory
