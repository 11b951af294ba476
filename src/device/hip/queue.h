// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device/device.h"
#include "device/hip/kernels.h"
#include "device/hip/library.h"

#include <memory>

namespace diomp::device::hip {

/// Creates a queue on a stream that does not synchronise with the default stream of the program's
/// kernels.
result<std::unique_ptr<queue>> make_queue(const std::shared_ptr<const library> &runtime, int device,
                                          std::shared_ptr<device_kernels> kernels);

} // namespace diomp::device::hip
