// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The release of this library.
#pragma once

#include "base/result.h"

#include <string_view>

namespace diomp {

/// "1.0.0", of diomp.h. Ranks of one job must have equal ones (docs/abi.md).
[[nodiscard]] const char *library_version();

/// The error of a job whose ranks have loaded different versions. `rank`: "rank 3 on node-1".
[[nodiscard]] error version_mismatch(std::string_view rank, std::string_view version,
                                     std::string_view of_rank_0);

} // namespace diomp
