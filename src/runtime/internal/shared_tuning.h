// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tuning file of collectives, which rank 0 reads for all ranks: all members of a group have to
// choose alike.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>

namespace diomp::coll {
class algorithm_source;
}

namespace diomp::launch {
class launcher;
}

namespace diomp::runtime {

/// Rank 0 reads `file` (empty: no rules) and publishes its rules, or why it cannot. Call before a
/// fence.
status publish_tuning(launch::launcher &launcher, const std::string &file);
/// The rules of rank 0 (null: it has none), or its error, which is the same on all ranks. Call
/// after that fence.
result<std::shared_ptr<const coll::algorithm_source>> fetch_tuning(launch::launcher &launcher,
                                                                   const std::string &file);

} // namespace diomp::runtime
