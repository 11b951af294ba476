// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects which ranks share a node, for launchers that do not report it.
#pragma once

#include "launch/launch.h"

#include <string>
#include <string_view>
#include <vector>

namespace diomp::launch {

/// Keys of the launchers' own values; they differ from all keys of the layers above.
inline constexpr std::string_view node_key = "launch.node";
inline constexpr std::string_view job_key = "launch.job";

/// Identifies the node: equal for two processes only if they can share memory. Made of host name,
/// running kernel (boot id) and network namespace, to which the names of the sockets that pass
/// memory descriptors belong. Printable, without spaces.
[[nodiscard]] std::string node_identity();

/// Sets local_ranks, local and local_size of a job whose rank is set. `ranks` is ascending and
/// contains the own rank.
void set_local_ranks(job_info &info, std::vector<world_rank> ranks);

/// Sets job_id, chosen by rank 0, and the ranks of this node: those whose `node` is equal.
/// Collective: one fence, which also publishes what `by` has put before. Blocks.
status agree_on_job(launcher &by, job_info &info, const std::string &node);

/// Replaces characters that a job id must not contain by '_'.
[[nodiscard]] std::string to_job_id(std::string text);

} // namespace diomp::launch
