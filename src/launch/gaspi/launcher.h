// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by gaspi_run, GPI-2's own launcher, or by whatever sets its variables.
//
// gaspi_run starts processes and no more, so values travel through GPI-2: each rank has a board of
// 64 KiB, which the others read. A fence of N ranks is log2(N) notifications each, one after the
// other.
#pragma once

#include "launch/environment.h"
#include "launch/launch.h"

namespace diomp::launch::gaspi {

/// True if gaspi_run describes this process and the build has GPI-2.
bool present(const environment &lookup);

/// Joins the job: starts GPI-2 and removes gaspi_run's variables.
result<std::unique_ptr<launcher>> join(const environment &lookup);

} // namespace diomp::launch::gaspi
