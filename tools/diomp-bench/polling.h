// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that find their condition at once: a test of a signal, a wait for any of 64 signals of
// which the last is ready, progress with nothing to do. On rank 0, while the other ranks wait in a
// barrier.
#pragma once

#include "bench/report.h"

namespace diomp::bench {

/// Appends a row per call. Ends the job if a call gives a wrong result.
void measure_polling(const sampling &how, report &into);

} // namespace diomp::bench
