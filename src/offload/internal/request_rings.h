// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rings of one device: several, so that teams do not wait for one another.
#pragma once

#include "device/device.h"
#include "offload/internal/request_ring.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace diomp::offload {

class request_rings {
public:
    /// More rings than teams that run at a time gain nothing: one thread serves them all.
    static constexpr std::uint32_t num_rings = 8;
    /// A ring then holds a request of each thread of a team of 512.
    static constexpr unsigned slot_bits = 9;
    /// What create() needs on the device.
    [[nodiscard]] static std::size_t device_bytes();

    /// `device_memory` is aligned to 64 bytes and lives as long as the object. Call reset() before
    /// the first region.
    static result<std::unique_ptr<request_rings>> create(device::backend &backend,
                                                         std::byte *device_memory);

    /// The array of rings in device memory.
    [[nodiscard]] diomp_ring *on_device() const;
    /// Empties all rings on both sides; no region may run, and no request be executed. Blocks until
    /// the device has it.
    status reset(device::queue &by);

    [[nodiscard]] std::span<request_ring> all() { return rings_; }
    [[nodiscard]] bool is_broken() const;

private:
    request_rings(device::pinned_memory pinned, std::byte *device_memory);

    device::pinned_memory pinned_;
    std::byte *device_memory_; ///< diomp_ring [num_rings], then busy [num_rings][slot]
    std::vector<request_ring> rings_;
};

} // namespace diomp::offload
