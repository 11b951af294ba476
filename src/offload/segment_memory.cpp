// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/segment_memory.h"

#include <algorithm>

namespace diomp::offload {
namespace {

/// Memory is committed in units of this size, because each unit is one more mapping in every
/// process that opens the segment.
constexpr std::size_t commit_unit_bytes = std::size_t{32} << 20;

/// The default size. Where memory grows, a reservation costs only addresses, and either half of a
/// segment may need all memory of the device. Elsewhere a reservation is memory: the ranks share
/// four fifths of it; the rest is for contexts, kernels' stacks, and memory outside of the segment.
std::size_t default_size_bytes(const device::properties &about, bool grows, int num_sharing) {
    std::size_t const total = about.total_bytes;
    std::size_t const wanted =
        grows ? total * 2 : total / 5 * 4 / static_cast<std::size_t>(num_sharing);
    return std::max(wanted / commit_unit_bytes, std::size_t{1}) * commit_unit_bytes;
}

} // namespace

result<std::unique_ptr<segment_memory>> segment_memory::create(const accelerator &on,
                                                               std::size_t size_bytes,
                                                               int num_sharing,
                                                               std::uint64_t preferred) {
    if (size_bytes == 0) {
        auto about = on.backend->describe(on.id);
        DIOMP_TRY(about);
        size_bytes = default_size_bytes(about.value(), about.value().memory_grows, num_sharing);
    }
    auto reserved = on.backend->reserve_at(on.id, size_bytes, preferred);
    DIOMP_TRY(reserved);
    return std::unique_ptr<segment_memory>(new segment_memory(on, reserved.take()));
}

result<std::unique_ptr<segment_memory>>
segment_memory::create_committed(const accelerator &on, std::size_t size_bytes, int num_sharing) {
    if (size_bytes == 0) {
        auto about = on.backend->describe(on.id);
        DIOMP_TRY(about);
        size_bytes = default_size_bytes(about.value(), false, num_sharing);
    }
    auto made = create(on, size_bytes, num_sharing);
    DIOMP_TRY(made);
    // In one commit: adapters need not support access across mappings.
    DIOMP_TRY(made.value()->commit(0, made.value()->size_bytes()));
    made.value()->is_permanent_ = true;
    return made;
}

status segment_memory::commit(std::uint64_t offset, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    std::uint64_t const begin = offset / commit_unit_bytes * commit_unit_bytes;
    std::uint64_t const end = std::min<std::uint64_t>((offset + nbytes + commit_unit_bytes - 1) /
                                                          commit_unit_bytes * commit_unit_bytes,
                                                      size_bytes());
    return memory_->commit(begin, end - begin);
}

result<device::shared_handle> segment_memory::share(std::size_t num_known,
                                                    std::size_t max_extents) {
    std::lock_guard const guard(mutex_);
    return memory_->share(num_known, max_extents);
}

} // namespace diomp::offload
