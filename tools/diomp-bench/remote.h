// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers to the first remote device: inline in the messages that start regions ("inline")
// against zero-copy between the memories ("zero_copy"), and the size from which the second is
// faster.
#pragma once

#include "bench/report.h"

namespace diomp::bench {

/// Appends a row per size and protocol, and prints the size for DIOMP_SPLIT_THRESHOLD. Without
/// remote devices, prints a message to standard error and returns false.
bool measure_remote(const sampling &how, report &into);

} // namespace diomp::bench
