//===-- Plan.h - Recorded target regions and updates ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLUGIN_PLAN_H
#define DIOMP_PLUGIN_PLAN_H

#include "Transfer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace diomp {

/// Recordings that have not ended, of all threads.
extern std::atomic<int> NumRecordings;
/// One load in programs that record nothing.
inline bool isRecording() {
  return NumRecordings.load(std::memory_order_relaxed) != 0;
}

/// Call before and after a launch that will be recorded.
void noteLaunch(bool Begins);
/// Call after a region has been launched, if isRecording(). Allocates: the
/// launch has allocated memory of the device for this execution.
void recordLaunch(GenericPluginTy &Plugin, int32_t DeviceId, void *Entry,
                  void **Args, const ptrdiff_t *Offsets,
                  const KernelArgsTy &KernelArgs, bool Allocates,
                  bool Succeeded);

struct DeviceOfPlugin;
/// Call before the graph of a plan is launched, if isRecording(): regions that
/// another thread may be recording beside.
void noteGraph(const DeviceOfPlugin &On);

/// Call after a transfer, if isRecording().
void recordTransfer(GenericPluginTy &Plugin, int32_t DeviceId,
                    const Transfer &What, bool Succeeded);

/// Call for all memory of devices: a plan whose memory is freed is not launched
/// again.
void noteAllocation(GenericPluginTy &Plugin, int32_t DeviceId,
                    const void *Begin, int64_t Size);
void noteRelease(GenericPluginTy &Plugin, int32_t DeviceId, const void *Begin);

} // namespace diomp

#endif
