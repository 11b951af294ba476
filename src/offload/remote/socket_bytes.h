// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>

namespace diomp::offload::remote {

/// Bytes that processes have written to a TCP socket since it was opened, up to a constant: those
/// that the peer has acknowledged and those in the send buffer. nullopt: the system does not know.
/// No process may write to it at the time. Any thread.
std::optional<std::uint64_t> bytes_written(int socket);

} // namespace diomp::offload::remote
