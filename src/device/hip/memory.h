// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of hipMalloc: fully allocated from the start, of fixed size, shared by HIP's interprocess
// handles of 64 bytes.
#pragma once

#include "device/device.h"
#include "device/hip/library.h"

#include <memory>

namespace diomp::device::hip {

result<std::unique_ptr<memory>> allocate(const std::shared_ptr<const library> &runtime, int device,
                                         std::size_t nbytes);
result<std::unique_ptr<peer_memory>> open(const std::shared_ptr<const library> &runtime, int device,
                                          const shared_handle &shared);

} // namespace diomp::device::hip
