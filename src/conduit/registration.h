// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much of a segment may be registered with a network.
#pragma once

#include "conduit/window.h"
#include "launch/launch.h"

namespace diomp::conduit {

/// All of the own slot, or 0, and the log says why: networks pin what they register, and a segment
/// that reserves most of the memory, as it does unless the user gives its size, cannot be pinned.
std::size_t bytes_to_register(const window &window, const launch::job_info &job);

} // namespace diomp::conduit
