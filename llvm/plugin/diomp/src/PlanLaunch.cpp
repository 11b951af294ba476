//===-- PlanLaunch.cpp - Launches of recorded plans -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecordedPlan.h"

#include "offload/plan_table.h"

#include <algorithm>
#include <iterator>
#include <memory>

using namespace diomp;

namespace {

/// Whether the update includes pointers that libomptarget has attached: it
/// restores them after copies from the device, and copies them to the device
/// from memory of its own.
bool updatesPointers(const HostDataToTargetTy &Entry, const Transfer &What) {
  const auto First = reinterpret_cast<uintptr_t>(What.Device);
  const uintptr_t End = First + What.Size;
  bool Found = false;
  Entry.lock();
  Entry.foreachShadowPointerInfo([&](const ShadowPtrInfoTy &Attached) {
    const auto At = reinterpret_cast<uintptr_t>(Attached.TgtPtrAddr);
    Found = Found || (At < End && At + diomp::attachedSize(Attached) > First);
    return OFFLOAD_SUCCESS;
  });
  Entry.unlock();
  return Found;
}

bool start(const Plan &Of, const RegionLaunch &Launch,
           __tgt_async_info &AsyncInfo) {
  // The plugin changes the number of arguments.
  KernelArgsTy KernelArgs = Launch.KernelArgs;
  return Of.On.Plugin->launch_kernel(
             Of.On.Id, Launch.Entry, const_cast<void **>(Launch.Args.data()),
             const_cast<ptrdiff_t *>(Launch.Offsets.data()), &KernelArgs,
             &AsyncInfo) == OFFLOAD_SUCCESS;
}

bool start(const Plan &Of, const Transfer &What, __tgt_async_info &AsyncInfo) {
  GenericPluginTy &Plugin = *Of.On.Plugin;
  const int32_t Outcome =
      What.ToDevice
          ? Plugin.data_submit_async(Of.On.Id, What.Device, What.Host,
                                     What.Size, &AsyncInfo)
          : Plugin.data_retrieve_async(Of.On.Id, What.Host, What.Device,
                                       What.Size, &AsyncInfo);
  return Outcome == OFFLOAD_SUCCESS;
}

bool start(const Plan &, const std::shared_ptr<RegionGraph> &Graph,
           __tgt_async_info &AsyncInfo) {
  return Graph->launch(AsyncInfo);
}

/// Why the plan cannot be launched; DIOMP_PLAN_DONE: it can.
int32_t check(const Plan &Of) {
  if (!PM)
    return DIOMP_PLAN_NONE;
  if (Of.IsStale.load(std::memory_order_acquire))
    return DIOMP_PLAN_STALE;
  if (Of.Updates.empty())
    return DIOMP_PLAN_DONE;
  DeviceTy *Device = deviceOf(Of.OpenMPDevice);
  if (!Device)
    return DIOMP_PLAN_NONE;
  return includesPointers(*Device, Of) ? DIOMP_PLAN_ATTACHED : DIOMP_PLAN_DONE;
}

/// Waits for the queue, if there is one, and releases it.
bool finish(const DeviceOfPlugin &On, __tgt_async_info &AsyncInfo) {
  return !AsyncInfo.Queue ||
         On.Plugin->synchronize(On.Id, &AsyncInfo) == OFFLOAD_SUCCESS;
}

/// Issues all operations; stops at the first that fails. Updates from the
/// device are waited for before updates to it, which may read the same memory
/// of the host when they are issued. A plugin that executes operations
/// synchronously creates no queue.
bool issue(const Plan &Of, __tgt_async_info &AsyncInfo) {
  bool HasUpdatesToHost = false;
  for (const auto &Each : Of.Operations) {
    if (const auto *What = std::get_if<Transfer>(&Each)) {
      if (What->ToDevice && HasUpdatesToHost && !finish(Of.On, AsyncInfo))
        return false;
      HasUpdatesToHost = !What->ToDevice;
    }
    if (!std::visit(
            [&](const auto &Operation) {
              return start(Of, Operation, AsyncInfo);
            },
            Each))
      return false;
  }
  return true;
}

/// A plan that its device executes.
struct Launch {
  DeviceOfPlugin On;
  __tgt_async_info AsyncInfo;
  std::vector<std::shared_ptr<RegionGraph>> Graphs; ///< the plan may be freed

  explicit Launch(const Plan &Of) : On(Of.On) {
    for (const auto &Each : Of.Operations)
      if (const auto *Graph = std::get_if<std::shared_ptr<RegionGraph>>(&Each))
        Graphs.push_back(*Graph);
  }
};

} // namespace

DeviceTy *diomp::deviceOf(int32_t Number) {
  // The manager exists from the first image to the last one.
  if (!PM || Number < 0 || Number >= PM->getNumDevices())
    return nullptr;
  auto Devices = PM->getExclusiveDevicesAccessor();
  return (*Devices)[Number].get();
}

// One search in the table of mappings for each update.
bool diomp::includesPointers(DeviceTy &Device, const Plan &Of) {
  if (Of.Updates.empty())
    return false;
  auto Mappings =
      Device.getMappingInfo().HostDataToTargetMap.getExclusiveAccessor();
  return std::any_of(
      Of.Updates.begin(), Of.Updates.end(), [&](const Transfer &What) {
        const auto Host = reinterpret_cast<uintptr_t>(What.Host);
        auto After = Mappings->upper_bound(Host);
        if (After == Mappings->begin())
          return false;
        const HostDataToTargetTy &Entry = *std::prev(After)->HDTT;
        return Host < Entry.HstPtrEnd && updatesPointers(Entry, What);
      });
}

int32_t diomp::launchPlan(void *Handle) {
  const auto &Of = *static_cast<const Plan *>(Handle);
  if (const int32_t Why = check(Of))
    return Why;
  __tgt_async_info AsyncInfo;
  const bool Issued = issue(Of, AsyncInfo);
  return finish(Of.On, AsyncInfo) && Issued ? DIOMP_PLAN_DONE
                                            : DIOMP_PLAN_ERROR;
}

int32_t diomp::waitForLaunch(void *Handle) {
  std::unique_ptr<Launch> Of(static_cast<Launch *>(Handle));
  return PM && finish(Of->On, Of->AsyncInfo) ? DIOMP_PLAN_DONE
                                             : DIOMP_PLAN_ERROR;
}

int32_t diomp::testLaunch(void *Handle) {
  std::unique_ptr<Launch> Of(static_cast<Launch *>(Handle));
  if (!PM)
    return DIOMP_PLAN_ERROR;
  // A queue that fails is released by the wait.
  if (Of->On.Plugin->query_async(Of->On.Id, &Of->AsyncInfo) !=
      OFFLOAD_SUCCESS) {
    finish(Of->On, Of->AsyncInfo);
    return DIOMP_PLAN_ERROR;
  }
  if (!Of->AsyncInfo.Queue)
    return DIOMP_PLAN_DONE;
  Of.release();
  return DIOMP_PLAN_BUSY;
}

int32_t diomp::startPlan(void *Handle, void **Launched) {
  *Launched = nullptr;
  const auto &Of = *static_cast<const Plan *>(Handle);
  if (const int32_t Why = check(Of))
    return Why;
  auto New = std::make_unique<Launch>(Of);
  if (!issue(Of, New->AsyncInfo)) {
    finish(New->On, New->AsyncInfo);
    return DIOMP_PLAN_ERROR;
  }
  if (!New->AsyncInfo.Queue)
    return DIOMP_PLAN_DONE;
  // Remote devices receive the operations with the first test.
  Launch *const Issued = New.release();
  const int32_t Outcome = testLaunch(Issued);
  if (Outcome != DIOMP_PLAN_BUSY)
    return Outcome;
  *Launched = Issued;
  return DIOMP_PLAN_DONE;
}
