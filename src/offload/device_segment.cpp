// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plan of the short way. A target region maps, runs and unmaps, and the next one does the same: the
// same blocks come and go, in the order of a stack. The heap's choices depend on its state alone,
// so a block that is freed when the heap is as it was right after its allocation leaves the state
// from before it, and the same request would get the same place again. Such a block *rests*: it is
// free for everybody who asks, but the heap still holds it. If the next request is the same, it
// wakes up; before anything else happens to the heap, what rests is given back in earnest. So no
// offset is ever another than without resting.
//
// `state_` numbers the states: each allocation makes a new one and remembers the one before.
#include "offload/device_segment.h"

#include "base/log.h"
#include "offload/segment_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace diomp::offload {

using memory::heap;

namespace {

/// Large blocks of the second half begin so far behind a page. Large arrays of a program begin
/// where pages do, or 16 bytes behind that, and memcpy between places that are alike in their pages
/// may take a third longer than between others (glibc 2.36, 1 MiB, Zen 5: docs/offload.md).
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

std::optional<std::uint64_t> device_segment::wake(const device_allocation &wanted,
                                                  std::size_t alignment) {
    if (resting_.empty() || !wanted.by_openmp) {
        return std::nullopt;
    }
    record &candidate = *resting_.back();
    if (candidate.before != state_ || candidate.what.nbytes != wanted.nbytes ||
        candidate.alignment != alignment) {
        return std::nullopt;
    }
    candidate.what.host = wanted.host;
    candidate.is_resting = false;
    state_ = candidate.after;
    resting_.pop_back();
    return candidate.what.offset;
}

void device_segment::settle() {
    for (; !resting_.empty(); resting_.pop_back()) {
        std::uint64_t const offset = resting_.back()->what.offset;
        give_to_heap(offset);
        records_.erase(offset);
    }
}

const device_segment::record *device_segment::live(std::uint64_t offset) const {
    auto const found = records_.find(offset);
    return found == records_.end() || found->second.is_resting ? nullptr : &found->second;
}

device_segment::record *device_segment::live(std::uint64_t offset) {
    return const_cast<record *>(std::as_const(*this).live(offset));
}

heap::released_block device_segment::give_to_heap(std::uint64_t offset) {
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

bool device_segment::is_mapped_and_used(const device_allocation &wanted) const {
    auto const begin = reinterpret_cast<std::uintptr_t>(wanted.host);
    return wanted.host != nullptr && std::ranges::any_of(used_, [&](std::uint64_t offset) {
               device_allocation const &other = records_.at(offset).what;
               auto const start = reinterpret_cast<std::uintptr_t>(other.host);
               return other.host != nullptr && start < begin + wanted.nbytes &&
                      begin < start + other.nbytes;
           });
}

std::optional<std::uint64_t> device_segment::allocate(const device_allocation &wanted,
                                                      std::size_t alignment, bool *again) {
    std::lock_guard const guard(mutex_);
    if (again != nullptr) {
        *again = is_mapped_and_used(wanted);
    }
    if (auto const woken = wake(wanted, alignment)) {
        return woken;
    }
    settle();
    std::optional<std::uint64_t> offset;
    if (wanted.by_openmp) {
        std::size_t const coarse =
            wanted.nbytes < large_bytes ? alignment : std::max(alignment, page_bytes);
        offset = mapped_.allocate(wanted.nbytes, coarse, mapped_.capacity_bytes());
        offset = offset ? std::optional(*offset + mapped_begin_) : std::nullopt;
    } else if (wanted.kind == OMPX_MEM_SYMMETRIC) {
        offset = symmetric_.allocate(wanted.nbytes, alignment, half_ - private_.extent());
    } else {
        offset = private_.allocate(wanted.nbytes, alignment, half_ - symmetric_.extent());
    }
    if (!offset) {
        return std::nullopt;
    }
    if (memory_ != nullptr) {
        if (status const committed = memory_->commit(*offset, wanted.nbytes); !committed) {
            log(log_level::info, "device {}: {}", device_, committed.failure().message());
            give_to_heap(*offset);
            return std::nullopt;
        }
    }
    record made;
    made.what = wanted;
    made.what.offset = *offset;
    made.alignment = alignment;
    made.before = state_;
    made.after = state_ = ++last_state_;
    records_.emplace(*offset, std::move(made));
    if (wanted.kind == OMPX_MEM_ASYMMETRIC) {
        numbers_.emplace(wanted.number, *offset);
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

std::optional<device_allocation> device_segment::look_up(std::uint64_t offset) const {
    auto const found = find_block(offset);
    if (!found) {
        // The end of what fills its granules to the last byte.
        auto const before = offset == 0 ? std::nullopt : find_block(offset - 1);
        return before && before->offset + before->nbytes == offset ? look_up(offset - 1)
                                                                   : std::nullopt;
    }
    record const *const entry = live(found->offset);
    return entry == nullptr ? std::nullopt : std::optional(entry->what);
}

std::optional<device_allocation> device_segment::find(std::uint64_t offset) const {
    std::lock_guard const guard(mutex_);
    return look_up(offset);
}

std::optional<device_allocation> device_segment::tell_of(std::optional<device_allocation> what,
                                                         world_rank asker, bool is_mapped) {
    if (!what) {
        return what;
    }
    record &known = records_.at(what->offset);
    if (known.is_retired) {
        return std::nullopt;
    }
    auto &others = known.known_by.others;
    if (is_mapped) {
        known.known_by.mapped_ranks = true;
    } else if (std::find(others.begin(), others.end(), asker) == others.end()) {
        others.push_back(asker);
    }
    return what;
}

std::optional<device_allocation> device_segment::tell(std::uint64_t offset, world_rank asker,
                                                      bool is_mapped) {
    std::lock_guard const guard(mutex_);
    return tell_of(look_up(offset), asker, is_mapped);
}

std::optional<device_allocation> device_segment::tell_asymmetric(std::uint64_t number,
                                                                 world_rank asker, bool is_mapped) {
    std::lock_guard const guard(mutex_);
    auto const known = numbers_.find(number);
    return tell_of(known == numbers_.end() ? std::nullopt : look_up(known->second), asker,
                   is_mapped);
}

std::optional<device_allocation> device_segment::find_and_use(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    auto const found = look_up(offset);
    if (!found) {
        return found;
    }
    record &known = records_.at(found->offset);
    if (known.is_retired) {
        return std::nullopt;
    }
    if (!known.known_by.is_used) {
        known.known_by.is_used = true;
        used_.push_back(found->offset);
    }
    return found;
}

std::optional<device_segment::told> device_segment::retire(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    record *const found = live(offset);
    if (found == nullptr || found->is_retired) {
        return std::nullopt;
    }
    found->is_retired = true;
    return found->known_by;
}

void device_segment::take_out(const record &of) {
    if (of.known_by.is_used) {
        std::erase(used_, of.what.offset);
    }
    if (of.what.number != 0) {
        numbers_.erase(of.what.number);
    }
    records_.erase(of.what.offset);
}

std::optional<heap::released_block> device_segment::release(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    record const *const found = live(offset);
    if (found == nullptr) {
        return std::nullopt;
    }
    settle();
    state_ = ++last_state_;
    take_out(*found);
    return give_to_heap(offset);
}

bool device_segment::release_unknown(std::uint64_t offset, std::size_t limit_bytes) {
    std::lock_guard const guard(mutex_);
    record *const found = live(offset);
    if (found == nullptr || !found->what.by_openmp || found->is_retired ||
        !found->known_by.nobody() || found->what.nbytes >= limit_bytes) {
        return false;
    }
    if (found->after == state_) {
        state_ = found->before;
        found->is_resting = true;
        resting_.push_back(found);
        return true;
    }
    settle();
    state_ = ++last_state_;
    take_out(*found);
    give_to_heap(offset);
    return true;
}

std::size_t device_segment::num_allocations() const {
    std::lock_guard const guard(mutex_);
    return records_.size() - resting_.size();
}

std::uint64_t device_segment::used_bytes() {
    std::lock_guard const guard(mutex_);
    settle();
    return symmetric_.used_bytes() + private_.used_bytes() + mapped_.used_bytes();
}

ompx_segment_info_t device_segment::info() {
    std::lock_guard const guard(mutex_);
    settle();
    ompx_segment_info_t told{};
    told.base = base_;
    told.nbytes = size_bytes_;
    told.symmetric_used = symmetric_.used_bytes();
    told.local_used = private_.used_bytes() + mapped_.used_bytes();
    told.largest_free = std::max({symmetric_.largest_free(half_ - private_.extent()),
                                  private_.largest_free(half_ - symmetric_.extent()),
                                  mapped_.largest_free(mapped_.capacity_bytes())});
    told.num_allocations = records_.size();
    return told;
}

} // namespace diomp::offload
