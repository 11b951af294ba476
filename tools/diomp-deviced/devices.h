// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices that this host can lend.
#pragma once

#include "base/result.h"
#include "offload/service/server.h"

#include <cstddef>
#include <string>
#include <vector>

namespace diomp::deviced {

/// `count` devices that share the processors that this process may use. The processors of a device
/// are adjacent, in one NUMA node if the numbers allow it. `memory_bytes` 0: an equal share of the
/// host's memory.
std::vector<offload::service::lent_device> cpu_devices(int count, std::size_t memory_bytes);

/// All devices of one of LLVM's plugins: "host", "cuda", "amdgpu". `memory_bytes` (0: chosen) is
/// for stage buffers between network and device.
result<std::vector<offload::service::lent_device>> plugin_devices(const std::string &plugin,
                                                                  std::size_t memory_bytes);

} // namespace diomp::deviced
