// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// This rank's device segments by OpenMP's device number, and the epoch of their memory.
#pragma once

#include "base/result.h"
#include "memory/memory.h"
#include "offload/internal/device_segment.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::offload {

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
    void add(device_segment &made) {
        if (made.memory() != nullptr) {
            has_accelerators_.store(true, std::memory_order_release);
        }
        segments_[static_cast<std::size_t>(made.device())].store(&made, std::memory_order_release);
    }

    /// nullptr: the address is in no segment.
    [[nodiscard]] device_segment *containing(const void *address) const {
        if (!space_.in_arena(address) && !has_accelerators_.load(std::memory_order_acquire)) {
            return nullptr;
        }
        for (auto const &each : segments_) {
            device_segment *const segment = each.load(std::memory_order_acquire);
            if (segment != nullptr && segment->offset_of(address)) {
                return segment;
            }
        }
        return nullptr;
    }
    /// The allocation that begins at the address; nullopt: none on this device.
    [[nodiscard]] std::optional<device_allocation> find_allocation_at(int device,
                                                                      const void *address) const {
        device_segment const *const segment = find(device);
        auto const offset = segment == nullptr ? std::nullopt : segment->offset_of(address);
        auto const found = offset ? segment->find(*offset) : std::nullopt;
        return found && found->offset == *offset ? found : std::nullopt;
    }

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
    std::atomic<bool> has_accelerators_{false}; ///< any segment is on an accelerator
    std::atomic<std::uint64_t> *epoch_ = nullptr;
};

} // namespace diomp::offload
