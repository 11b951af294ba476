// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device/cuda/context.h"
#include "device/device.h"

#include <memory>

namespace diomp::device::cuda {

/// Creates a queue on a stream that does not synchronise with the default stream of the program's
/// kernels.
result<std::unique_ptr<queue>> make_queue(const std::shared_ptr<context> &on);

} // namespace diomp::device::cuda
