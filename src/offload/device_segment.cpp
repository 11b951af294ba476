// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/device_segment.h"

#include <algorithm>

namespace diomp::offload {

using memory::heap;

device_segment::device_segment(int device, std::byte *base, std::size_t nbytes)
    : device_(device), base_(base), size_bytes_(nbytes),
      symmetric_(heap::direction::from_front, nbytes), private_(heap::direction::from_end, nbytes) {
}

std::optional<std::uint64_t> device_segment::allocate(const device_allocation &wanted,
                                                      std::size_t alignment) {
    std::lock_guard const guard(mutex_);
    auto const offset =
        wanted.kind == OMPX_MEM_SYMMETRIC
            ? symmetric_.allocate(wanted.nbytes, alignment, size_bytes_ - private_.extent())
            : private_.allocate(wanted.nbytes, alignment, size_bytes_ - symmetric_.extent());
    if (!offset) {
        return std::nullopt;
    }
    records_.insert_or_assign(*offset, record{wanted.host, wanted.number, {}});
    if (wanted.kind == OMPX_MEM_ASYMMETRIC) {
        numbers_.emplace(wanted.number, *offset);
    }
    return offset;
}

std::optional<device_allocation> device_segment::look_up(std::uint64_t offset) const {
    auto found = symmetric_.find(offset);
    bool const is_symmetric = found.has_value();
    if (!found) {
        found = private_.find(offset);
    }
    if (!found && offset > 0) {
        // The end of what fills its granules to the last byte.
        auto before = symmetric_.find(offset - 1);
        before = before ? before : private_.find(offset - 1);
        if (!before || before->offset + before->nbytes != offset) {
            return std::nullopt;
        }
        return look_up(offset - 1);
    }
    if (!found) {
        return std::nullopt;
    }
    record const &known = records_.at(found->offset);
    ompx_mem_kind_t const kind = is_symmetric        ? OMPX_MEM_SYMMETRIC
                                 : known.number != 0 ? OMPX_MEM_ASYMMETRIC
                                                     : OMPX_MEM_LOCAL;
    return device_allocation{kind, found->offset, found->nbytes, known.host, known.number};
}

std::optional<device_allocation> device_segment::find(std::uint64_t offset) const {
    std::lock_guard const guard(mutex_);
    return look_up(offset);
}

std::optional<device_allocation> device_segment::find_asymmetric(std::uint64_t number) const {
    std::lock_guard const guard(mutex_);
    auto const found = numbers_.find(number);
    return found == numbers_.end() ? std::nullopt : look_up(found->second);
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

void device_segment::mark_counterpart(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    if (auto const found = records_.find(offset); found != records_.end()) {
        found->second.known_by.is_counterpart = true;
    }
}

std::optional<device_segment::told> device_segment::retire(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    auto const found = records_.find(offset);
    if (found == records_.end() || found->second.is_retired) {
        return std::nullopt;
    }
    found->second.is_retired = true;
    return found->second.known_by;
}

std::optional<device_segment::freed> device_segment::release(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    auto const what = records_.contains(offset) ? look_up(offset) : std::nullopt;
    if (!what) {
        return std::nullopt;
    }
    auto const block = what->kind == OMPX_MEM_SYMMETRIC
                           ? symmetric_.release(offset, size_bytes_ - private_.extent())
                           : private_.release(offset, size_bytes_ - symmetric_.extent());
    records_.erase(offset);
    if (what->kind == OMPX_MEM_ASYMMETRIC) {
        numbers_.erase(what->number);
    }
    return freed{*what, *block};
}

std::size_t device_segment::num_allocations() const {
    std::lock_guard const guard(mutex_);
    return records_.size();
}

std::uint64_t device_segment::used_bytes() const {
    std::lock_guard const guard(mutex_);
    return symmetric_.used_bytes() + private_.used_bytes();
}

ompx_segment_info_t device_segment::info() const {
    std::lock_guard const guard(mutex_);
    ompx_segment_info_t told{};
    told.base = base_;
    told.nbytes = size_bytes_;
    told.symmetric_used = symmetric_.used_bytes();
    told.local_used = private_.used_bytes();
    told.largest_free = std::max(symmetric_.largest_free(size_bytes_ - private_.extent()),
                                 private_.largest_free(size_bytes_ - symmetric_.extent()));
    told.num_allocations = records_.size();
    return told;
}

} // namespace diomp::offload
