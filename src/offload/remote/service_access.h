// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Access of a rank to memory of its own remote devices by messages. The operations of
// offload/service_devices.h.
#pragma once

#include "base/result.h"
#include "offload/service_devices.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::offload::remote {

class client;

std::optional<service_devices::description> describe_gpu(client &of, int index);
result<std::uint64_t> allocate_memory(client &of, int index, std::size_t nbytes);
std::uint64_t allocate_segment(client &of, int index, std::size_t nbytes, std::uint64_t preferred);
bool lends_segment(client &of, int index);
void release_memory(client &of, int index, std::uint64_t address);
status write_memory(client &by, int index, std::uint64_t to, const void *from, std::size_t nbytes);
status read_memory(client &by, int index, void *to, std::uint64_t from, std::size_t nbytes);
status copy_memory(client &by, int index, std::uint64_t to, std::uint64_t from, std::size_t nbytes);

} // namespace diomp::offload::remote
