// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conduit between ranks of one node: segments are mapped, messages go through rings in shared
// memory, private memory is accessed by cross-memory attach.
#pragma once

#include "transport/conduit.h"

namespace diomp::transport::shm {

[[nodiscard]] std::size_t control_bytes();

result<std::unique_ptr<conduit>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options);

} // namespace diomp::transport::shm
