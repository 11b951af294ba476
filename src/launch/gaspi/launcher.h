// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by gaspi_run, GPI-2's own launcher, or by another launcher that sets its
// variables.
//
// gaspi_run only starts processes, so values are exchanged through GPI-2: each rank has a key-value
// area of 64 KiB, which the others read. A fence of N ranks is a dissemination barrier of log2(N)
// rounds of notifications.
#pragma once

#include "launch/internal/environment.h"
#include "launch/launch.h"

namespace diomp::launch::gaspi {

/// True if gaspi_run describes this process and the build has GPI-2.
bool present(const environment &lookup);

/// Joins the job: starts GPI-2 and removes gaspi_run's variables.
result<std::unique_ptr<launcher>> join(const environment &lookup);

} // namespace diomp::launch::gaspi
