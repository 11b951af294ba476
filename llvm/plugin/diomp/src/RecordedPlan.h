//===-- RecordedPlan.h - What a plan contains -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the recording (Plan.cpp) and the launches (PlanLaunch.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_RECORDED_PLAN_H
#define DIOMP_RECORDED_PLAN_H

#include "Offload.h"
#include "PlanGraph.h"
#include "PluginManager.h"
#include "Transfer.h"
#include "omptarget.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace diomp {

struct RegionLaunch {
  void *Entry;
  KernelArgsTy KernelArgs;
  std::vector<void *> Args;
  std::vector<ptrdiff_t> Offsets;
  bool Allocates; ///< memory of the device, in each launch
};

/// Does not change after its recording, except for IsStale.
struct Plan {
  DeviceOfPlugin On;
  int32_t OpenMPDevice = -1;
  std::vector<
      std::variant<RegionLaunch, Transfer, std::shared_ptr<RegionGraph>>>
      Operations;
  std::vector<uintptr_t> Addresses; ///< device memory that they use; sorted
  std::vector<Transfer> Updates;    ///< each one once
  std::atomic<bool> IsStale{false};
};

/// Null: there is no such device.
DeviceTy *deviceOf(int32_t Number);

/// Whether updates include pointers that libomptarget has attached.
bool includesPointers(DeviceTy &Device, const Plan &Of);

// The functions of diomp_plan_table that launch.
int32_t launchPlan(void *Handle);
int32_t startPlan(void *Handle, void **Launched);
int32_t testLaunch(void *Handle);
int32_t waitForLaunch(void *Handle);

} // namespace diomp

#endif
