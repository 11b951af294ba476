// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pins large allocations of this rank's own segment when they are copied to or from a GPU. From
// then on the GPU's copy engines access them directly, also for OpenMP's maps.
#pragma once

#include "device/device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace diomp::memory {
class segment;
}

namespace diomp::offload {

/// Thread-safe.
class pinned_host {
public:
    /// Allocations smaller than `min_bytes` or segment::large_bytes are not pinned.
    pinned_host(memory::segment &host, std::size_t min_bytes);
    /// The backends must outlive this object.
    ~pinned_host();
    pinned_host(const pinned_host &) = delete;
    pinned_host &operator=(const pinned_host &) = delete;

    /// Call before devices of `by` copy `nbytes` from or to `address`, which may be any memory.
    /// Pins the allocation once copies amount to its size: pinning and a copy then take about as
    /// long as an unpinned copy. A refusal by the driver is not retried. Blocks while the driver
    /// pins.
    void pin_allocation(const void *address, std::size_t nbytes, device::backend &by);

private:
    struct pin {
        const device::backend *by;
        std::uint64_t copied_bytes = 0; ///< copied before it was pinned
        bool was_attempted = false;
        device::pinned_memory memory;
    };
    pin &find_or_add_pin(std::uint64_t offset, const device::backend &by);
    void unpin(std::uint64_t offset);

    memory::segment &host_;
    std::size_t const min_bytes_;
    std::atomic<bool> has_pins_{false}; ///< lets programs without GPUs free without the mutex
    std::mutex mutex_;                  ///< guards pins_; taken before the segment's mutex
    std::map<std::uint64_t, std::vector<pin>> pins_; ///< key: offset of the allocation
};

} // namespace diomp::offload
