// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Large allocations of this rank's own segment are pinned when they are copied to or from a GPU:
// from then on its copy engines read and write them without a detour, also when OpenMP maps
// them.
#pragma once

#include "device/device.h"
#include "memory/segment.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace diomp::offload {

/// Any thread.
class pinned_host {
public:
    /// Allocations of less than `from_bytes` or segment::large_bytes stay as they are.
    pinned_host(memory::segment &host, std::size_t from_bytes);
    /// The backends must still be there.
    ~pinned_host();
    pinned_host(const pinned_host &) = delete;
    pinned_host &operator=(const pinned_host &) = delete;

    /// Before devices of `by` copy `nbytes` from or to `address`, which may be anything. Pins the
    /// allocation when as much as all of it is copied: that and a copy take the driver as long as
    /// a copy without it. A driver that refuses is asked once. Blocks for as long.
    void pin_around(const void *address, std::size_t nbytes, device::backend &by);

private:
    struct pin {
        const device::backend *by;
        std::uint64_t copied_bytes = 0; ///< before it was pinned
        bool is_asked_for = false;
        device::pinned_memory held;
    };
    pin &pin_of(std::uint64_t offset, const device::backend &by);
    void forget(std::uint64_t offset);

    memory::segment &host_;
    std::size_t const from_bytes_;
    std::atomic<bool> knows_any_{false}; ///< programs without GPUs free without the mutex
    std::mutex mutex_;                   ///< over known_; taken before the segment's
    std::map<std::uint64_t, std::vector<pin>> known_; ///< by offset of the allocation
};

} // namespace diomp::offload
