// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transport between ranks of one node: segments are mapped, messages go through rings in shared
// memory, private memory is accessed by cross-memory attach.
#pragma once

#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/node_transport.h"

namespace diomp::transport::shm {

[[nodiscard]] std::size_t control_bytes();

result<std::unique_ptr<node_transport>> create(launch::launcher &launcher, const arena &arena,
                                               bool cross_memory_attach);

} // namespace diomp::transport::shm
