// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Creation of the conduit from a name and options.
#pragma once

#include "base/result.h"
#include "transport/options.h"

#include <cstddef>
#include <memory>
#include <string>

namespace diomp::launch {
class launcher;
}

namespace diomp::transport {

class arena;
class conduit;

/// Bytes of control area per rank that the arena must have for the conduits of this build.
std::size_t control_bytes_per_rank();

/// Whether a conduit of this name serves the ranks of the caller's node like those of others, so
/// that no rank loads another one's memory.
bool is_forced_network(const std::string &name);

/// Collective over the job. `arena` must outlive the conduit. Names: "auto" (shm for ranks of this
/// node, options.network for others if there are any), "shm", and "ucx", "gasnet", "gaspi" and
/// "tcp" (for every rank but the caller's own). options.network: "auto", or one of the latter four.
result<std::unique_ptr<conduit>> create(const std::string &name, launch::launcher &launcher,
                                        const arena &arena, const conduit_options &options);

} // namespace diomp::transport
