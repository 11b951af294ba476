// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/device_segment.h"

#include "base/log.h"
#include "diomp/device_endpoint.h"
#include "offload/internal/segment_memory.h"
#include "offload/remote_memory.h"

#include <algorithm>
#include <array>
#include <mutex>

namespace diomp::offload {
namespace {

/// Distance of large blocks of the second half from the beginning of a page. A program's large
/// arrays begin at a page or 16 bytes after it, and memcpy between addresses with equal offsets in
/// their pages can take a third longer than between others (glibc 2.36, 1 MiB, Zen 5:
/// docs/offload.md).
constexpr std::size_t stagger_bytes = 128;

/// The runtime's own allocation at offset 0, on devices of all kinds, since symmetric memory has
/// one offset on all ranks.
constexpr std::size_t own_bytes =
    DIOMP_BARRIER_GROUPS * DIOMP_BARRIER_WORDS * sizeof(std::uint64_t);

} // namespace

device_segment::device_segment(int device, std::byte *base, std::size_t nbytes, std::size_t stagger)
    : device_(device), base_(base), size_bytes_(nbytes), heaps_(nbytes, stagger),
      common_{0, nbytes} {
    constexpr std::size_t alignment = memory::heap::granule_bytes;
    if (heaps_.allocate(OMPX_MEM_SYMMETRIC, own_bytes, alignment)) {
        allocations_.add({OMPX_MEM_SYMMETRIC, false, 0, own_bytes, nullptr, 0}, alignment);
        num_own_ = 1;
    }
}

device_segment::device_segment(int device, std::byte *base, std::size_t nbytes)
    : device_segment(device, base, nbytes, stagger_bytes) {}

device_segment::device_segment(int device, std::byte *base, std::size_t nbytes,
                               remote_device_index on)
    : device_segment(device, base, nbytes, std::size_t{0}) {
    remote_index_ = static_cast<int>(on);
}

device_segment::device_segment(int device, std::unique_ptr<segment_memory> memory)
    : device_segment(device, memory->base(), memory->size_bytes(), 0) {
    memory_ = std::move(memory);
}

device_segment::~device_segment() = default;

status device_segment::set_up_barrier_words() {
    if (num_own_ == 0) {
        return error(OMPX_ERR_NOMEM, "no memory for the words of barriers in regions");
    }
    DIOMP_TRY(memory_->commit(0, own_bytes));
    std::vector<std::byte> const zeros(own_bytes);
    accelerator const &on = memory_->on();
    auto queue = on.backend->make_queue(on.id);
    DIOMP_TRY(queue);
    DIOMP_TRY(queue.value()->copy(base_, zeros.data(), zeros.size()));
    DIOMP_TRY(queue.value()->wait());
    barrier_words_ = reinterpret_cast<std::uintptr_t>(base_);
    return {};
}

void device_segment::abandon_memory() { static_cast<void>(memory_.release()); }

void device_segment::flush_cached() {
    while (auto const offset = allocations_.pop_cached()) {
        heaps_.release(*offset);
    }
}

std::optional<std::uint64_t> device_segment::allocate(const device_allocation &request,
                                                      std::size_t alignment,
                                                      bool *is_mapped_again) {
    std::lock_guard const guard(mutex_);
    if (is_mapped_again != nullptr) {
        *is_mapped_again = allocations_.is_mapped_and_used(request);
    }
    if (auto const reused = allocations_.reuse(request, alignment)) {
        return reused;
    }
    flush_cached();
    auto const offset = request.by_openmp
                            ? heaps_.allocate_mapped(request.nbytes, alignment)
                            : heaps_.allocate(request.kind, request.nbytes, alignment);
    if (!offset) {
        return std::nullopt;
    }
    if (memory_ != nullptr) {
        if (status const committed = memory_->commit(*offset, request.nbytes); !committed) {
            log(log_level::info, "device {}: {}", device_, committed.failure().message());
            heaps_.release(*offset);
            return std::nullopt;
        }
    }
    device_allocation made = request;
    made.offset = *offset;
    allocations_.add(made, alignment);
    return offset;
}

std::optional<std::uint64_t> device_segment::begin_of(std::uint64_t offset) const {
    auto const begin = heaps_.begin_of(offset);
    bool const is_after_own = num_own_ > 0 && begin == 0 && offset >= own_bytes;
    return is_after_own ? std::nullopt : begin;
}

std::optional<device_allocation> device_segment::find(std::uint64_t offset) const {
    std::lock_guard const guard(mutex_);
    auto const begin = begin_of(offset);
    auto const *const found = begin ? allocations_.find(*begin) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(found->what);
}

allocation_key device_segment::key_of(const device_allocation &own) const {
    if (own.kind == OMPX_MEM_ASYMMETRIC) {
        return {key_kind::number, own.number};
    }
    return own.by_openmp ? allocation_key{key_kind::from_end, heaps_.mapped_end() - own.offset}
                         : allocation_key{key_kind::offset, own.offset};
}

std::optional<std::uint64_t> device_segment::offset_at(const allocation_key &key) const {
    switch (key.kind) {
    case key_kind::offset:
        return key.value;
    case key_kind::from_end:
        return heaps_.mapped_bytes() < key.value ? std::nullopt
                                                 : std::optional(heaps_.mapped_end() - key.value);
    case key_kind::number:
        return allocations_.offset_of_number(key.value);
    case key_kind::address:
        break;
    }
    return key.value - reinterpret_cast<std::uintptr_t>(base_);
}

std::optional<device_allocation> device_segment::find_and_share(const allocation_key &key,
                                                                std::size_t inside,
                                                                world_rank requester,
                                                                bool is_mapped) {
    std::lock_guard const guard(mutex_);
    auto const offset = offset_at(key);
    auto const begin = offset ? begin_of(*offset + inside) : std::nullopt;
    return begin ? allocations_.share(*begin, requester, is_mapped) : std::nullopt;
}

std::optional<device_allocation> device_segment::find_and_use(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    auto const begin = begin_of(offset);
    return begin ? allocations_.use(*begin) : std::nullopt;
}

std::optional<sharer_set> device_segment::begin_release(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    return allocations_.begin_release(offset);
}

bool device_segment::release(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    auto const *const found = allocations_.find(offset);
    if (found == nullptr) {
        return false;
    }
    flush_cached();
    allocations_.erase(*found);
    heaps_.release(offset);
    return true;
}

bool device_segment::release_unshared(std::uint64_t offset, std::size_t limit_bytes) {
    std::lock_guard const guard(mutex_);
    auto *const found = allocations_.find(offset);
    if (found == nullptr || !found->what.by_openmp || found->is_releasing ||
        !found->sharers.empty() || found->what.nbytes >= limit_bytes) {
        return false;
    }
    if (!allocations_.cache_freed(*found)) {
        flush_cached();
        allocations_.erase(*found);
        heaps_.release(offset);
    }
    return true;
}

device_segment::common_parts device_segment::common() const {
    std::lock_guard const guard(mutex_);
    common_.symmetric_end =
        std::min(std::max(common_.symmetric_end, heaps_.symmetric_end()), heaps_.private_begin());
    common_.mapped_begin = std::min(common_.mapped_begin, heaps_.mapped_begin());
    return common_;
}

std::size_t device_segment::num_allocations() const {
    std::lock_guard const guard(mutex_);
    return allocations_.count() - num_own_;
}

std::uint64_t device_segment::used_bytes() {
    std::lock_guard const guard(mutex_);
    flush_cached();
    return heaps_.symmetric_bytes() - num_own_ * own_bytes + heaps_.local_bytes();
}

ompx_segment_info_t device_segment::info(bool by_openmp) {
    std::lock_guard const guard(mutex_);
    flush_cached();
    ompx_segment_info_t report{};
    report.base = base_;
    report.nbytes = size_bytes_;
    report.symmetric_used = heaps_.symmetric_bytes() - num_own_ * own_bytes;
    report.local_used = heaps_.local_bytes();
    report.largest_free = heaps_.largest_free(by_openmp);
    report.num_allocations = allocations_.count() - num_own_;
    return report;
}

std::optional<int> session_index_of(const device_segment &segment, remote_memory *remote) {
    if (remote == nullptr || segment.memory() == nullptr ||
        segment.memory()->on().made_by != vendor::service) {
        return std::nullopt;
    }
    int const index = segment.memory()->on().id.value();
    return remote->lends_segment(index) ? std::optional(index) : std::nullopt;
}

} // namespace diomp::offload
