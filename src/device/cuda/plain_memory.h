// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of devices without virtual memory management: fully allocated from the start, shared by
// interprocess handles of 64 bytes. The context must be current for both calls.
#pragma once

#include "device/cuda/context.h"
#include "device/device.h"

#include <memory>

namespace diomp::device::cuda {

result<std::unique_ptr<memory>> allocate_plain(const std::shared_ptr<context> &on,
                                               std::size_t nbytes);
result<std::unique_ptr<peer_memory>> open_plain(const std::shared_ptr<context> &on,
                                                const shared_handle &shared);

} // namespace diomp::device::cuda
