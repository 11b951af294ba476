// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What this host has to lend.
#pragma once

#include "base/result.h"
#include "offload/service/server.h"

#include <cstddef>
#include <string>
#include <vector>

namespace diomp::deviced {

/// `count` devices that share the processors that this process may use: those of a device are next
/// to each other, of one NUMA node as far as the numbers allow. `memory_bytes` 0: the share of the
/// host's memory.
std::vector<offload::service::lent_device> processors_of_this_host(int count,
                                                                   std::size_t memory_bytes);

/// All devices of one of LLVM's plugins: "host", "cuda", "amdgpu". `memory_bytes`, 0: chosen, is
/// for transfers that change over between network and device.
result<std::vector<offload::service::lent_device>> plugin_devices(const std::string &plugin,
                                                                  std::size_t memory_bytes);

} // namespace diomp::deviced
