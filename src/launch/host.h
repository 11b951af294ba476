// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of this node and of jobs on it; shared by the launchers and diomp-run.
#pragma once

#include <string>

namespace diomp::launch {

/// Name of this node, reduced to [A-Za-z0-9._-]; "localhost" if it has none.
[[nodiscard]] std::string host_name();
/// Unique among the jobs of the site: "<host>-<pid>-<random>", of the characters above.
[[nodiscard]] std::string make_job_id(const std::string &host);

} // namespace diomp::launch
