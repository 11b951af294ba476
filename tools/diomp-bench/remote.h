// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers to the first remote device: inside the messages that start regions ("inside") against
// straight between the memories ("straight"), and where the second becomes the faster one.
#pragma once

#include "bench/report.h"

namespace diomp::bench {

/// Appends a row per size and way, and prints the size for DIOMP_SPLIT_THRESHOLD. False, with a
/// message on standard error, without remote devices.
bool measure_remote(const sampling &how, report &into);

} // namespace diomp::bench
