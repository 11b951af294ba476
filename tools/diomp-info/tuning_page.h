// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algorithms of collectives, and the rules of DIOMP_COLL_TUNING, as text.
#pragma once

#include "base/result.h"

#include <string>

namespace diomp::info {

/// A line for each rule of `file`; empty: that there are none.
result<std::string> rules_text(const std::string &file);
/// Prints the rules in force and every algorithm that a rule can name. Returns the exit status.
int print_tuning();

} // namespace diomp::info
