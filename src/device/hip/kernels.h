// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device/hip/library.h"
#include "device/kernels/kernel_module.h"

namespace diomp::device::hip {

/// The runtime's kernels on one device, shared by its queues and its backend. Thread-safe.
class device_kernels {
public:
    device_kernels(std::shared_ptr<const library> runtime, int device)
        : runtime_(std::move(runtime)), device_(device),
          module_("HIP device " + std::to_string(device)),
          updates_("HIP device " + std::to_string(device)) {}
    ~device_kernels();
    device_kernels(const device_kernels &) = delete;
    device_kernels &operator=(const device_kernels &) = delete;

    /// Finds a kernel. The device must be current.
    result<kernel_handle> find(const std::string &name);
    /// Finds the kernel of queue::update, which is in a module of its own.
    result<kernel_handle> find_update();

private:
    std::shared_ptr<const library> runtime_;
    int const device_;
    kernels::kernel_module module_;
    kernels::kernel_module updates_;
};

} // namespace diomp::device::hip
