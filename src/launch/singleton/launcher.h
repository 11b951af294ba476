// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program started without a launcher: a world of one rank.
#pragma once

#include "launch/launch.h"

namespace diomp::launch::singleton {

std::unique_ptr<launcher> make();

} // namespace diomp::launch::singleton
