// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Log setup of processes that are not ranks: destination and prefix of the lines of base/log.h.
#pragma once

#include "base/log_levels.h"

#include <string>

namespace diomp {

/// Calls set_log unless it has been called before: the prefix of a rank's lines stays.
void set_log_if_unset(const log_levels &levels, std::string prefix);
/// Writes lines to this descriptor from now on instead of standard error, even if that is closed or
/// redirected. Not owned.
void set_log_descriptor(int descriptor);
[[nodiscard]] int log_descriptor();

} // namespace diomp
