// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/request_rings.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace diomp::offload {
namespace {

constexpr std::size_t num_ring_slots = std::size_t{1} << request_rings::slot_bits;
constexpr std::size_t busy_offset = request_rings::num_rings * sizeof(diomp_ring);
constexpr std::size_t busy_bytes = num_ring_slots * sizeof(std::uint64_t);

} // namespace

std::size_t request_rings::device_bytes() { return busy_offset + num_rings * busy_bytes; }

result<std::unique_ptr<request_rings>> request_rings::create(device::backend &backend,
                                                             std::byte *device_memory) {
    auto pinned = backend.allocate_pinned(num_rings * request_ring::memory_bytes(slot_bits));
    DIOMP_TRY(pinned);
    return std::unique_ptr<request_rings>(new request_rings(pinned.take(), device_memory));
}

request_rings::request_rings(device::pinned_memory pinned, std::byte *device_memory)
    : pinned_(std::move(pinned)), device_memory_(device_memory) {
    for (std::size_t number = 0; number < num_rings; ++number) {
        rings_.emplace_back(pinned_.base() + number * request_ring::memory_bytes(slot_bits),
                            slot_bits);
    }
}

diomp_ring *request_rings::on_device() const {
    return reinterpret_cast<diomp_ring *>(device_memory_);
}

status request_rings::reset(device::queue &by) {
    std::vector<std::byte> content(device_bytes());
    for (std::size_t number = 0; number < num_rings; ++number) {
        rings_[number].reset();
        diomp_ring const ring = rings_[number].describe(
            reinterpret_cast<std::uint64_t *>(device_memory_ + busy_offset + number * busy_bytes));
        std::memcpy(content.data() + number * sizeof(ring), &ring, sizeof(ring));
    }
    DIOMP_TRY(by.copy(device_memory_, content.data(), content.size()));
    return by.wait();
}

bool request_rings::is_broken() const {
    return std::ranges::any_of(rings_, [](const request_ring &each) { return each.is_broken(); });
}

} // namespace diomp::offload
