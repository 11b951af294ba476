// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// This rank's device segments by OpenMP's device number, and the epoch of their memory.
#pragma once

#include "base/result.h"
#include "offload/internal/allocation_table.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::memory {
class address_space;
}

namespace diomp::offload {

class device_segment;

/// Device numbers below this limit can have a segment.
inline constexpr int max_devices = 64;

/// Thread-safe; add() by one thread at a time. Entries are never removed.
class segment_table {
public:
    explicit segment_table(const memory::address_space &space) : space_(space) {}

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
    void add(device_segment &made);

    /// nullptr: the address is in no segment.
    [[nodiscard]] device_segment *containing(const void *address) const;
    /// The allocation that begins at the address; nullopt: none on this device.
    [[nodiscard]] std::optional<device_allocation> find_allocation_at(int device,
                                                                      const void *address) const;

    /// `epoch` is incremented before device memory of this rank is freed. Call before the first
    /// transfer.
    void attach(std::atomic<std::uint64_t> &epoch) { epoch_ = &epoch; }
    /// 0: not attached.
    [[nodiscard]] std::uint64_t epoch() const {
        return epoch_ == nullptr ? 0 : epoch_->load(std::memory_order_acquire);
    }
    void advance_epoch() {
        if (epoch_ != nullptr) {
            epoch_->fetch_add(1, std::memory_order_acq_rel);
        }
    }

private:
    const memory::address_space &space_;
    std::array<std::atomic<device_segment *>, max_devices> segments_{};
    std::atomic<bool> has_others_{false}; ///< any segment is outside of the arena
    std::atomic<std::uint64_t> *epoch_ = nullptr;
};

} // namespace diomp::offload
