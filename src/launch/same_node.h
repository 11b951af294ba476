// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ranks share a node, for launchers that do not tell.
#pragma once

#include "launch/launch.h"

#include <string>
#include <string_view>
#include <vector>

namespace diomp::launch {

/// Keys of the launchers' own values, apart from those of the layers above.
inline constexpr std::string_view node_key = "launch.node";
inline constexpr std::string_view job_key = "launch.job";

/// Equal for two processes only if they can share memory: host name, running kernel (boot id) and
/// network namespace, in which the sockets that hand out memory have their names. Printable, no
/// spaces.
[[nodiscard]] std::string node_identity();

/// Fills local_ranks, local and local_size of a job whose rank is set. `ranks` ascend and hold the
/// own rank.
void set_local_ranks(job_info &info, std::vector<world_rank> ranks);

/// `text`, with what a job id must not hold replaced by '_'.
[[nodiscard]] std::string to_job_id(std::string text);

} // namespace diomp::launch
