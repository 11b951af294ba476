// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cache of freed blocks. A target region maps, runs and unmaps, and the next one does the same,
// so the same blocks are allocated and freed in stack order. The heap's choices depend only on its
// state: if a block is freed when the heap is in the state right after the block's allocation,
// freeing restores the state before it, and an equal request would get the same offset again. Such
// a block is *cached*: it counts as free, but the heap still holds it. If the next request is
// equal, the block is reused; before any other change of the heap, cached blocks are released to
// it. The cache therefore never changes an offset.
//
// `state_` numbers the states: each allocation creates a new one and remembers the previous one.
#include "offload/internal/device_segment.h"

#include "base/log.h"
#include "offload/internal/segment_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace diomp::offload {

using memory::heap;

namespace {

/// Distance of large blocks of the second half from the beginning of a page. A program's large
/// arrays begin at a page or 16 bytes after it, and memcpy between addresses with equal offsets in
/// their pages can take a third longer than between others (glibc 2.36, 1 MiB, Zen 5:
/// docs/offload.md).
constexpr std::size_t stagger_bytes = 128;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t large_bytes = std::size_t{256} << 10;

} // namespace

device_segment::device_segment(int device, std::byte *base, std::size_t nbytes, std::size_t stagger)
    : device_(device), base_(base), size_bytes_(nbytes),
      half_(nbytes / 2 / page_bytes * page_bytes), mapped_begin_(half_ + stagger),
      symmetric_(heap::direction::from_front, half_), private_(heap::direction::from_end, half_),
      mapped_(heap::direction::from_end, nbytes - mapped_begin_) {}

device_segment::device_segment(int device, std::byte *base, std::size_t nbytes)
    : device_segment(device, base, nbytes, stagger_bytes) {}

device_segment::device_segment(int device, std::unique_ptr<segment_memory> memory)
    : device_segment(device, memory->base(), memory->size_bytes(), 0) {
    memory_ = std::move(memory);
}

device_segment::~device_segment() = default;

void device_segment::abandon_memory() { static_cast<void>(memory_.release()); }

std::optional<std::uint64_t> device_segment::reuse_cached(const device_allocation &request,
                                                          std::size_t alignment) {
    if (cached_.empty() || !request.by_openmp) {
        return std::nullopt;
    }
    allocation_record &candidate = *cached_.back();
    if (candidate.before != state_ || candidate.what.nbytes != request.nbytes ||
        candidate.alignment != alignment) {
        return std::nullopt;
    }
    candidate.what.host = request.host;
    candidate.is_cached = false;
    state_ = candidate.after;
    cached_.pop_back();
    return candidate.what.offset;
}

void device_segment::flush_cached() {
    for (; !cached_.empty(); cached_.pop_back()) {
        std::uint64_t const offset = cached_.back()->what.offset;
        release_to_heap(offset);
        records_.erase(offset);
    }
}

const device_segment::allocation_record *device_segment::find_live(std::uint64_t offset) const {
    auto const found = records_.find(offset);
    return found == records_.end() || found->second.is_cached ? nullptr : &found->second;
}

device_segment::allocation_record *device_segment::find_live(std::uint64_t offset) {
    return const_cast<allocation_record *>(std::as_const(*this).find_live(offset));
}

heap::released_block device_segment::release_to_heap(std::uint64_t offset) {
    if (offset >= half_) {
        auto block = *mapped_.release(offset - mapped_begin_, mapped_.capacity_bytes());
        block.offset += mapped_begin_;
        block.free_begin += mapped_begin_;
        block.free_end += mapped_begin_;
        return block;
    }
    auto const block = symmetric_.release(offset, half_ - private_.extent());
    return block ? *block : *private_.release(offset, half_ - symmetric_.extent());
}

bool device_segment::is_mapped_and_used(const device_allocation &request) const {
    auto const begin = reinterpret_cast<std::uintptr_t>(request.host);
    return request.host != nullptr && std::ranges::any_of(used_, [&](std::uint64_t offset) {
               device_allocation const &other = records_.at(offset).what;
               auto const start = reinterpret_cast<std::uintptr_t>(other.host);
               return other.host != nullptr && start < begin + request.nbytes &&
                      begin < start + other.nbytes;
           });
}

std::optional<std::uint64_t> device_segment::allocate(const device_allocation &request,
                                                      std::size_t alignment,
                                                      bool *is_mapped_again) {
    std::lock_guard const guard(mutex_);
    if (is_mapped_again != nullptr) {
        *is_mapped_again = is_mapped_and_used(request);
    }
    if (auto const reused = reuse_cached(request, alignment)) {
        return reused;
    }
    flush_cached();
    std::optional<std::uint64_t> offset;
    if (request.by_openmp) {
        std::size_t const rounded_alignment =
            request.nbytes < large_bytes ? alignment : std::max(alignment, page_bytes);
        offset = mapped_.allocate(request.nbytes, rounded_alignment, mapped_.capacity_bytes());
        offset = offset ? std::optional(*offset + mapped_begin_) : std::nullopt;
    } else if (request.kind == OMPX_MEM_SYMMETRIC) {
        offset = symmetric_.allocate(request.nbytes, alignment, half_ - private_.extent());
    } else {
        offset = private_.allocate(request.nbytes, alignment, half_ - symmetric_.extent());
    }
    if (!offset) {
        return std::nullopt;
    }
    if (memory_ != nullptr) {
        if (status const committed = memory_->commit(*offset, request.nbytes); !committed) {
            log(log_level::info, "device {}: {}", device_, committed.failure().message());
            release_to_heap(*offset);
            return std::nullopt;
        }
    }
    allocation_record made;
    made.what = request;
    made.what.offset = *offset;
    made.alignment = alignment;
    made.before = state_;
    made.after = state_ = ++last_state_;
    records_.emplace(*offset, std::move(made));
    if (request.kind == OMPX_MEM_ASYMMETRIC) {
        numbers_.emplace(request.number, *offset);
    }
    return offset;
}

std::optional<heap::block> device_segment::find_block(std::uint64_t offset) const {
    if (offset >= half_) {
        auto block = offset < mapped_begin_ ? std::nullopt : mapped_.find(offset - mapped_begin_);
        if (block) {
            block->offset += mapped_begin_;
        }
        return block;
    }
    auto const block = symmetric_.find(offset);
    return block ? block : private_.find(offset);
}

std::optional<device_allocation> device_segment::find_locked(std::uint64_t offset) const {
    auto const found = find_block(offset);
    if (!found) {
        // The end of an allocation that fills its granules completely.
        auto const before = offset == 0 ? std::nullopt : find_block(offset - 1);
        return before && before->offset + before->nbytes == offset ? find_locked(offset - 1)
                                                                   : std::nullopt;
    }
    allocation_record const *const entry = find_live(found->offset);
    return entry == nullptr ? std::nullopt : std::optional(entry->what);
}

std::optional<device_allocation> device_segment::find(std::uint64_t offset) const {
    std::lock_guard const guard(mutex_);
    return find_locked(offset);
}

std::optional<device_allocation>
device_segment::record_sharer(std::optional<device_allocation> what, world_rank requester,
                              bool is_mapped) {
    if (!what) {
        return what;
    }
    allocation_record &entry = records_.at(what->offset);
    if (entry.is_releasing) {
        return std::nullopt;
    }
    auto &others = entry.sharers.others;
    if (is_mapped) {
        entry.sharers.mapped_ranks = true;
    } else if (std::find(others.begin(), others.end(), requester) == others.end()) {
        others.push_back(requester);
    }
    return what;
}

std::optional<device_allocation>
device_segment::find_and_share(std::uint64_t offset, world_rank requester, bool is_mapped) {
    std::lock_guard const guard(mutex_);
    return record_sharer(find_locked(offset), requester, is_mapped);
}

std::optional<device_allocation> device_segment::find_and_share_asymmetric(std::uint64_t number,
                                                                           world_rank requester,
                                                                           bool is_mapped) {
    std::lock_guard const guard(mutex_);
    auto const entry = numbers_.find(number);
    return record_sharer(entry == numbers_.end() ? std::nullopt : find_locked(entry->second),
                         requester, is_mapped);
}

std::optional<device_allocation> device_segment::find_and_use(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    auto const found = find_locked(offset);
    if (!found) {
        return found;
    }
    allocation_record &entry = records_.at(found->offset);
    if (entry.is_releasing) {
        return std::nullopt;
    }
    if (!entry.sharers.is_used) {
        entry.sharers.is_used = true;
        used_.push_back(found->offset);
    }
    return found;
}

std::optional<device_segment::sharer_set> device_segment::begin_release(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    allocation_record *const found = find_live(offset);
    if (found == nullptr || found->is_releasing) {
        return std::nullopt;
    }
    found->is_releasing = true;
    return found->sharers;
}

void device_segment::erase_record(const allocation_record &of) {
    if (of.sharers.is_used) {
        std::erase(used_, of.what.offset);
    }
    if (of.what.number != 0) {
        numbers_.erase(of.what.number);
    }
    records_.erase(of.what.offset);
}

std::optional<heap::released_block> device_segment::release(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    allocation_record const *const found = find_live(offset);
    if (found == nullptr) {
        return std::nullopt;
    }
    flush_cached();
    state_ = ++last_state_;
    erase_record(*found);
    return release_to_heap(offset);
}

bool device_segment::release_unshared(std::uint64_t offset, std::size_t limit_bytes) {
    std::lock_guard const guard(mutex_);
    allocation_record *const found = find_live(offset);
    if (found == nullptr || !found->what.by_openmp || found->is_releasing ||
        !found->sharers.empty() || found->what.nbytes >= limit_bytes) {
        return false;
    }
    if (found->after == state_) {
        state_ = found->before;
        found->is_cached = true;
        cached_.push_back(found);
        return true;
    }
    flush_cached();
    state_ = ++last_state_;
    erase_record(*found);
    release_to_heap(offset);
    return true;
}

std::size_t device_segment::num_allocations() const {
    std::lock_guard const guard(mutex_);
    return records_.size() - cached_.size();
}

std::uint64_t device_segment::used_bytes() {
    std::lock_guard const guard(mutex_);
    flush_cached();
    return symmetric_.used_bytes() + private_.used_bytes() + mapped_.used_bytes();
}

ompx_segment_info_t device_segment::info() {
    std::lock_guard const guard(mutex_);
    flush_cached();
    ompx_segment_info_t report{};
    report.base = base_;
    report.nbytes = size_bytes_;
    report.symmetric_used = symmetric_.used_bytes();
    report.local_used = private_.used_bytes() + mapped_.used_bytes();
    report.largest_free = std::max({symmetric_.largest_free(half_ - private_.extent()),
                                    private_.largest_free(half_ - symmetric_.extent()),
                                    mapped_.largest_free(mapped_.capacity_bytes())});
    report.num_allocations = records_.size();
    return report;
}

} // namespace diomp::offload
