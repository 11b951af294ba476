// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/segment_memory.h"

#include <algorithm>

namespace diomp::offload {
namespace {

/// Memory is committed in pieces of this at least: each piece is one more mapping for every process
/// that opens the segment.
constexpr std::size_t step_bytes = std::size_t{32} << 20;

/// A reservation costs nothing but addresses, and either half of a segment may want all memory of
/// the device. Where it costs memory, ranks share four fifths of it; the rest is for contexts,
/// kernels' stacks, and what does not come from the segment.
std::size_t useful_bytes(const device::properties &about, bool grows, int num_sharing) {
    std::size_t const total = about.total_bytes;
    std::size_t const wanted =
        grows ? total * 2 : total / 5 * 4 / static_cast<std::size_t>(num_sharing);
    return std::max(wanted / step_bytes, std::size_t{1}) * step_bytes;
}

} // namespace

result<std::unique_ptr<segment_memory>>
segment_memory::create(const accelerator &on, std::size_t size_bytes, int num_sharing) {
    if (size_bytes == 0) {
        auto about = on.backend->describe(on.id);
        DIOMP_TRY(about);
        size_bytes = useful_bytes(about.value(), about.value().memory_grows, num_sharing);
    }
    auto reserved = on.backend->reserve(on.id, size_bytes);
    DIOMP_TRY(reserved);
    return std::unique_ptr<segment_memory>(new segment_memory(on, reserved.take()));
}

result<std::unique_ptr<segment_memory>>
segment_memory::create_whole(const accelerator &on, std::size_t size_bytes, int num_sharing) {
    if (size_bytes == 0) {
        auto about = on.backend->describe(on.id);
        DIOMP_TRY(about);
        size_bytes = useful_bytes(about.value(), false, num_sharing);
    }
    auto made = create(on, size_bytes, num_sharing);
    DIOMP_TRY(made);
    // In one piece: adapters need not be able to read across pieces.
    DIOMP_TRY(made.value()->commit(0, made.value()->size_bytes()));
    made.value()->is_kept_ = true;
    return made;
}

status segment_memory::commit(std::uint64_t offset, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    std::uint64_t const begin = offset / step_bytes * step_bytes;
    std::uint64_t const end = std::min<std::uint64_t>(
        (offset + nbytes + step_bytes - 1) / step_bytes * step_bytes, size_bytes());
    return memory_->commit(begin, end - begin);
}

result<device::shared_handle> segment_memory::share(std::size_t num_known, std::size_t max_parts) {
    std::lock_guard const guard(mutex_);
    return memory_->share(num_known, max_parts);
}

} // namespace diomp::offload
