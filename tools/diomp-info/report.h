// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What diomp-info shows without --doctor.
#pragma once

namespace diomp::info {

/// Starts the runtime and prints what it found; in a job, rank 0 prints for all. Exit status.
int print_report(bool as_json);

} // namespace diomp::info
