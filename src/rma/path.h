// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The path that a transfer took, for statistics and tests.
#pragma once

#include <cstddef>

namespace diomp::rma {

enum class path { self, direct, attach, message, conduit, device, peer_device, ipc, bounce };
inline constexpr std::size_t num_paths = 9;
[[nodiscard]] const char *name(path taken);

} // namespace diomp::rma
