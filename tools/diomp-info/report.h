// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The output of diomp-info without --doctor.
#pragma once

namespace diomp::info {

/// Starts the runtime and prints the installation, machine, ranks and settings; in a job, rank 0
/// prints for all ranks. Collective. Returns the exit status.
int print_report(bool as_json);

} // namespace diomp::info
