// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device/hip/library.h"
#include "device/kernels/kernel_module.h"

namespace diomp::device::hip {

/// The runtime's kernels on one device, for its queues and its backend. Any thread.
class device_kernels {
public:
    device_kernels(std::shared_ptr<const library> runtime, int device)
        : runtime_(std::move(runtime)), device_(device),
          module_("HIP device " + std::to_string(device)) {}
    ~device_kernels();
    device_kernels(const device_kernels &) = delete;
    device_kernels &operator=(const device_kernels &) = delete;

    /// The device is current.
    result<kernel_handle> find(const std::string &name);

private:
    std::shared_ptr<const library> runtime_;
    int const device_;
    kernels::kernel_module module_;
};

} // namespace diomp::device::hip
