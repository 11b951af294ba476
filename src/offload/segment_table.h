// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The segments of this rank's devices by OpenMP's device number.
#pragma once

#include "offload/device_segment.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace diomp::offload {

/// OpenMP's device numbers that can have a segment.
inline constexpr int max_devices = 64;

/// Any thread; one at a time adds. What is in it stays there.
class segment_table {
public:
    [[nodiscard]] static bool has_place_for(int device) {
        return device >= 0 && device < max_devices;
    }
    /// For any number, also one that another rank has sent. nullptr: that device has none.
    [[nodiscard]] device_segment *find(int device) const {
        return has_place_for(device)
                   ? segments_[static_cast<std::size_t>(device)].load(std::memory_order_acquire)
                   : nullptr;
    }
    /// There is a place for its device, and nothing in it.
    void add(device_segment &made) {
        segments_[static_cast<std::size_t>(made.device())].store(&made, std::memory_order_release);
    }

private:
    std::array<std::atomic<device_segment *>, max_devices> segments_{};
};

} // namespace diomp::offload
