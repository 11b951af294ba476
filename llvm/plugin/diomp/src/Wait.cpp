//===-- Wait.cpp - How a thread waits for a GPU -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's plugin for CUDA requests a context whose waits block on an interrupt
// (CU_CTX_SCHED_BLOCKING_SYNC). On an H100 that makes an empty region 24 us
// long instead of 10, and one of 430 us 75 us longer. The linker's --wrap
// redirects the call to this file, and DIOMP_DEVICE_WAIT selects the flags.
//
// A context that is already active, because another library created it, keeps
// its flags: LLVM's plugin makes no call then.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

#include "offload/table.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

// The values of CUctx_flags in the driver's binary interface.
enum : unsigned { Automatic = 0, Spin = 1, Yield = 2, Block = 4 };

/// Needed because the driver's automatic choice counts the contexts of this
/// process only.
static bool hasMoreRanksThanCores() {
  const diomp_offload_table *Table = diomp::runtimeTable();
  return Table && Table->version >= 2 &&
         Table->num_local_ranks() > sysconf(_SC_NPROCESSORS_ONLN);
}

static unsigned chooseFlags() {
  // The runtime reports other values as errors.
  const char *Text = std::getenv("DIOMP_DEVICE_WAIT");
  const std::string_view Wait = Text ? Text : "auto";
  if (Wait == "spin")
    return Spin;
  if (Wait == "yield")
    return Yield;
  if (Wait == "block" || hasMoreRanksThanCores())
    return Block;
  return Automatic;
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__Z29##Name
#define WRAP(Name) __wrap__Z29##Name

extern "C" {
// Undefined if LLVM's plugin for CUDA is not built.
[[gnu::weak]] int REAL(cuDevicePrimaryCtxSetFlags_v2ij)(int Device,
                                                        unsigned Flags);

int WRAP(cuDevicePrimaryCtxSetFlags_v2ij)(int Device, unsigned /*Flags*/) {
  return REAL(cuDevicePrimaryCtxSetFlags_v2ij)(Device, chooseFlags());
}
}
// NOLINTEND(bugprone-reserved-identifier)
