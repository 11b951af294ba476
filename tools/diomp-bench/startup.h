// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Start-up and exit of a whole job: `diomp-run -n RANKS diomp-bench hello`, from the start of
// diomp-run until it has been waited for.
#pragma once

#include "bench/report.h"

namespace diomp::bench {

/// Appends one row. If a job fails, prints a message to standard error and returns false.
bool measure_startup(int ranks, int samples, report &into);

} // namespace diomp::bench
