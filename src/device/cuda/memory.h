// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reservations with CUDA's virtual memory management: a range of addresses into which physical
// memory is mapped as it is committed. Physical memory leaves the process as a descriptor.
//
// A device without virtual memory management (some virtual machines, very old ones) gets what
// cuMemAlloc gives: all at once, shared by the older interprocess handles.
#pragma once

#include "device/cuda/context.h"
#include "device/device.h"

#include <memory>

namespace diomp::device::cuda {

/// What a device's memory can do.
struct abilities {
    bool maps = false;          ///< virtual memory management
    bool exports = false;       ///< as descriptors
    bool network_reads = false; ///< network cards can be told to read mapped memory
};
result<abilities> abilities_of(const library &driver, ordinal device);

result<std::unique_ptr<memory>> reserve(const std::shared_ptr<context> &on, abilities can,
                                        std::size_t max_bytes);
result<std::unique_ptr<peer_memory>> open(const std::shared_ptr<context> &on,
                                          const shared_handle &shared);

} // namespace diomp::device::cuda
