// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reservations with CUDA's virtual memory management: a range of addresses into which physical
// memory is mapped when it is committed. Physical memory is exported as a descriptor.
//
// A device without virtual memory management (some virtual machines, very old devices) uses
// cuMemAlloc: all memory at once, shared by legacy interprocess handles.
#pragma once

#include "device/cuda/context.h"
#include "device/device.h"

#include <memory>

namespace diomp::device::cuda {

/// Capabilities of a device's memory.
struct memory_capabilities {
    bool has_virtual_memory = false;  ///< virtual memory management
    bool exports_descriptors = false; ///< shares physical memory as file descriptors
    bool allows_rdma = false;         ///< network adapters can read mapped memory (GPUDirect RDMA)
};
result<memory_capabilities> memory_capabilities_of(const library &driver, ordinal device);

result<std::unique_ptr<memory>> reserve(const std::shared_ptr<context> &on, memory_capabilities can,
                                        std::size_t max_bytes, address preferred);
result<std::unique_ptr<peer_memory>> open(const std::shared_ptr<context> &on,
                                          const shared_handle &shared);

} // namespace diomp::device::cuda
