// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Direction and path of a transfer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace diomp::rma {

/// As seen by the initiating rank. Part of the wire format.
enum class direction : std::uint32_t {
    put, ///< from local to remote memory
    get, ///< from remote to local memory
};

/// The path that a transfer took, for statistics and tests.
enum class path { self, direct, attach, message, conduit, device, peer_device, ipc, bounce };
inline constexpr std::size_t num_paths = 9;
[[nodiscard]] const char *name(path taken);

} // namespace diomp::rma
