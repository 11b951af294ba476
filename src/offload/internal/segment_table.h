// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// This rank's device segments by OpenMP's device number.
#pragma once

#include "offload/internal/device_segment.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace diomp::offload {

/// Device numbers below this limit can have a segment.
inline constexpr int max_devices = 64;

/// Thread-safe; add() by one thread at a time. Entries are never removed.
class segment_table {
public:
    [[nodiscard]] static bool is_valid_number(int device) {
        return device >= 0 && device < max_devices;
    }
    /// Accepts any number, including one received from another rank. nullptr: no segment.
    [[nodiscard]] device_segment *find(int device) const {
        return is_valid_number(device)
                   ? segments_[static_cast<std::size_t>(device)].load(std::memory_order_acquire)
                   : nullptr;
    }
    /// The device number must be valid and without a segment.
    void add(device_segment &made) {
        segments_[static_cast<std::size_t>(made.device())].store(&made, std::memory_order_release);
    }

private:
    std::array<std::atomic<device_segment *>, max_devices> segments_{};
};

} // namespace diomp::offload
