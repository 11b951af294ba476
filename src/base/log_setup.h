// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For processes that are not ranks: where the lines of base/log.h go, and what they begin with.
#pragma once

#include "base/settings.h"

#include <string>

namespace diomp {

/// set_log where nothing has called it before: what a rank's lines begin with stays.
void set_log_if_unset(log_level level, std::string prefix);
/// Lines go there from now on and not to standard error, whatever becomes of that. Not owned.
void set_log_descriptor(int descriptor);

} // namespace diomp
