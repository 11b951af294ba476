//===-- Plan.cpp - Recorded target regions and updates ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A time loop runs the same regions on the same memory in each step. A plan
// keeps what libomptarget gives to its plugins for them: launches with their
// arguments, and the transfers of `target update`. Launching the plan again
// skips the search for mappings, and all its operations share one queue of the
// device, which is waited for once.
//
// Launches and transfers pass functions of GenericPluginTy, and updates pass
// targetDataUpdate(); the linker's --wrap redirects these calls. Operations
// are executed while they are recorded. What cannot be repeated is noted as the
// recording's problem: libomptarget uses temporary memory, of the host or of
// the device, for everything but launches on mapped memory and updates.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "RecordedPlan.h"

#include "llvm/ADT/DenseMap.h"

#include "offload/plan_table.h"

#include <algorithm>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

using namespace llvm;
using namespace diomp;
using llvm::omp::target::plugin::GenericPluginTy;

std::atomic<int> diomp::NumRecordings{0};

namespace {

/// Of the thread that owns it; guarded by the registry's mutex.
struct Recording {
  std::unique_ptr<Plan> Recorded;
  void (*OnAbandoned)();
  diomp_plan_content Content{};

  void note(diomp_plan_problem Problem) {
    if (Content.problem == DIOMP_PLAN_NO_PROBLEM)
      Content.problem = Problem;
  }
};

struct Registry {
  std::mutex Mutex; ///< a leaf
  std::vector<Recording *> Recordings;
  std::vector<Plan *> Plans;
  /// Sizes of allocations, by plugin, device and beginning.
  DenseMap<std::tuple<const void *, int32_t, const void *>, int64_t>
      Allocations;
};

/// Never destroyed: memory is freed after the destructors of this library.
Registry &registry() {
  static auto *const Only = new Registry;
  return *Only;
}

/// With the registry's mutex.
void forget(Recording *Ended) {
  auto &Active = registry().Recordings;
  Active.erase(std::find(Active.begin(), Active.end(), Ended));
  diomp::NumRecordings.fetch_sub(1, std::memory_order_relaxed);
}

void forget(Plan *Freed) {
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  auto &Plans = registry().Plans;
  Plans.erase(std::find(Plans.begin(), Plans.end(), Freed));
}

/// The calling thread's recording, which ends with the thread.
struct OwnRecording {
  std::unique_ptr<Recording> Active;
  bool IsInUpdate = false; ///< `target update`
  bool IsInLaunch = false;

  ~OwnRecording() {
    if (!Active)
      return;
    {
      std::lock_guard<std::mutex> Lock(registry().Mutex);
      forget(Active.get());
    }
    Active->OnAbandoned();
  }
};
thread_local OwnRecording Own;

/// The recording that an operation of the calling thread on this device belongs
/// to. Notes operations that prevent recordings. With the registry's mutex.
Recording *recordingOf(const DeviceOfPlugin &On) {
  if (Recording *Mine = Own.Active.get()) {
    if (Mine->Recorded->On == On)
      return Mine;
    Mine->note(DIOMP_PLAN_DEVICES);
  }
  for (Recording *Each : registry().Recordings)
    if (Each->Recorded->On == On)
      Each->note(DIOMP_PLAN_THREADS);
  return nullptr;
}

/// A transfer that cannot be recorded.
void noteTransfer(const DeviceOfPlugin &On) {
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  if (Recording *Active = recordingOf(On))
    Active->note(DIOMP_PLAN_TRANSFERS);
}

bool uses(const Plan &Of, uintptr_t Begin, uintptr_t End) {
  auto First =
      std::lower_bound(Of.Addresses.begin(), Of.Addresses.end(), Begin);
  return First != Of.Addresses.end() && *First < End;
}

/// Plans on the device that use this memory are not launched again. With the
/// registry's mutex.
void makeStale(const DeviceOfPlugin &On, uintptr_t Begin, uintptr_t End) {
  for (Plan *Each : registry().Plans)
    if (Each->On == On && uses(*Each, Begin, End))
      Each->IsStale.store(true, std::memory_order_release);
}

template <typename T, typename LessTy, typename EqualTy>
void sortUniquely(std::vector<T> &Values, LessTy Less, EqualTy Equal) {
  std::sort(Values.begin(), Values.end(), Less);
  Values.erase(std::unique(Values.begin(), Values.end(), Equal), Values.end());
}

/// Collects what is looked at later. Without the offset of an argument to its
/// array's first element, which need not be mapped.
void complete(Plan &Of) {
  for (const auto &Each : Of.Operations) {
    if (const auto *What = std::get_if<Transfer>(&Each)) {
      Of.Addresses.push_back(reinterpret_cast<uintptr_t>(What->Device));
      Of.Updates.push_back(*What);
      continue;
    }
    for (const void *Arg : std::get<RegionLaunch>(Each).Args)
      Of.Addresses.push_back(reinterpret_cast<uintptr_t>(Arg));
  }
  sortUniquely(Of.Addresses, std::less<>(), std::equal_to<>());
  auto Key = [](const Transfer &What) {
    return std::make_tuple(What.Host, What.Device, What.Size);
  };
  sortUniquely(
      Of.Updates,
      [&](const Transfer &A, const Transfer &B) { return Key(A) < Key(B); },
      [&](const Transfer &A, const Transfer &B) { return Key(A) == Key(B); });
}

int32_t begin(int32_t Number, void (*OnAbandoned)()) {
  DeviceTy *Device = deviceOf(Number);
  if (!Device || !diomp::loadImagesOf(*PM, Number))
    return DIOMP_PLAN_NONE;
  auto New = std::make_unique<Recording>();
  New->Recorded = std::make_unique<Plan>();
  New->Recorded->On = {Device->RTL, Device->RTLDeviceID};
  New->Recorded->OpenMPDevice = Number;
  New->OnAbandoned = OnAbandoned;
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  for (const Recording *Each : registry().Recordings)
    if (Each == Own.Active.get() || Each->Recorded->On == New->Recorded->On)
      return DIOMP_PLAN_BUSY;
  registry().Recordings.push_back(New.get());
  Own.Active = std::move(New);
  diomp::NumRecordings.fetch_add(1, std::memory_order_relaxed);
  return DIOMP_PLAN_DONE;
}

int32_t end(diomp_plan_content *Into, void **Result) {
  *Result = nullptr;
  if (!Own.Active)
    return DIOMP_PLAN_NONE;
  std::unique_ptr<Recording> Ended;
  {
    std::lock_guard<std::mutex> Lock(registry().Mutex);
    Ended = std::move(Own.Active);
    forget(Ended.get());
    complete(*Ended->Recorded);
    registry().Plans.push_back(Ended->Recorded.get());
  }
  DeviceTy *Device = deviceOf(Ended->Recorded->OpenMPDevice);
  if (!Device)
    Ended->note(DIOMP_PLAN_FAILED);
  else if (includesPointers(*Device, *Ended->Recorded))
    Ended->note(DIOMP_PLAN_POINTERS);
  *Into = Ended->Content;
  if (Into->problem == DIOMP_PLAN_NO_PROBLEM) {
    captureGraphs(*Ended->Recorded);
    *Result = Ended->Recorded.release();
    return DIOMP_PLAN_DONE;
  }
  forget(Ended->Recorded.get());
  return DIOMP_PLAN_DONE;
}

void free(void *Handle) {
  std::unique_ptr<Plan> Freed(static_cast<Plan *>(Handle));
  forget(Freed.get());
}

void forgetMemory(int32_t Number, const void *Begin, uint64_t Size) {
  DeviceTy *Device = deviceOf(Number);
  if (!Device)
    return;
  const auto Address = reinterpret_cast<uintptr_t>(Begin);
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  makeStale({Device->RTL, Device->RTLDeviceID}, Address, Address + Size);
}

int32_t isInRegion() { return Own.IsInLaunch ? 1 : 0; }

const diomp_plan_table Table{DIOMP_PLAN_TABLE_VERSION,
                             begin,
                             end,
                             launchPlan,
                             startPlan,
                             testLaunch,
                             waitForLaunch,
                             free,
                             forgetMemory,
                             isInRegion};

} // namespace

void diomp::noteLaunch(bool Begins) { Own.IsInLaunch = Begins; }

void diomp::noteGraph(const DeviceOfPlugin &On) {
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  recordingOf(On); // a thread that records launches no plan
}

void diomp::recordLaunch(GenericPluginTy &Plugin, int32_t DeviceId, void *Entry,
                         void **Args, const ptrdiff_t *Offsets,
                         const KernelArgsTy &KernelArgs, bool Allocates,
                         bool Succeeded) {
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  Recording *Active = recordingOf({&Plugin, DeviceId});
  if (!Active)
    return;
  if (!Succeeded)
    Active->note(DIOMP_PLAN_FAILED);
  if (diomp::hasRawArguments(KernelArgs)) {
    Active->note(DIOMP_PLAN_UNSUPPORTED);
    return;
  }
  RegionLaunch New{Entry, KernelArgs, {}, {}, Allocates};
  // What libomptarget has used already; its memory is the caller's.
  New.KernelArgs.ArgBasePtrs = New.KernelArgs.ArgPtrs = nullptr;
  New.KernelArgs.ArgNames = New.KernelArgs.ArgMappers = nullptr;
  New.KernelArgs.ArgSizes = New.KernelArgs.ArgTypes = nullptr;
  New.Args.assign(Args, Args + KernelArgs.NumArgs);
  New.Offsets.assign(Offsets, Offsets + KernelArgs.NumArgs);
  Active->Recorded->Operations.emplace_back(std::move(New));
  ++Active->Content.num_regions;
}

void diomp::recordTransfer(GenericPluginTy &Plugin, int32_t DeviceId,
                           const Transfer &What, bool Succeeded) {
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  Recording *Active = recordingOf({&Plugin, DeviceId});
  if (!Active)
    return;
  if (!Own.IsInUpdate)
    Active->note(DIOMP_PLAN_TRANSFERS);
  if (!Succeeded)
    Active->note(DIOMP_PLAN_FAILED);
  Active->Recorded->Operations.emplace_back(What);
  ++Active->Content.num_updates;
}

void diomp::noteAllocation(GenericPluginTy &Plugin, int32_t DeviceId,
                           const void *Begin, int64_t Size) {
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  registry().Allocations[{&Plugin, DeviceId, Begin}] = Size;
  if (isRecording())
    if (Recording *Active = recordingOf({&Plugin, DeviceId}))
      Active->note(DIOMP_PLAN_MAPS);
}

void diomp::noteRelease(GenericPluginTy &Plugin, int32_t DeviceId,
                        const void *Begin) {
  const DeviceOfPlugin On{&Plugin, DeviceId};
  std::lock_guard<std::mutex> Lock(registry().Mutex);
  auto &Allocations = registry().Allocations;
  auto Found = Allocations.find({&Plugin, DeviceId, Begin});
  if (Found == Allocations.end())
    return;
  const auto Address = reinterpret_cast<uintptr_t>(Begin);
  makeStale(On, Address, Address + Found->second);
  Allocations.erase(Found);
  if (isRecording())
    if (Recording *Active = recordingOf(On))
      Active->note(DIOMP_PLAN_MAPS);
}

/// Named on the linker's command line; no other reference pulls this file out
/// of its archive.
extern "C" __attribute__((constructor)) void diompHandOverPlans() {
  if (auto Callback = reinterpret_cast<diomp_offload_plans_function>(
          dlsym(RTLD_DEFAULT, "diomp_offload_plans")))
    Callback(&Table);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN4llvm3omp6target6plugin15GenericPluginTy##Name
#define WRAP(Name) __wrap__ZN4llvm3omp6target6plugin15GenericPluginTy##Name

extern "C" {
int32_t REAL(13data_exchangeEiPviS4_l)(GenericPluginTy *Plugin,
                                       int32_t SrcDeviceId, void *SrcPtr,
                                       int32_t DstDeviceId, void *DstPtr,
                                       int64_t Size);
int32_t REAL(19data_exchange_asyncEiPviS4_lP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t SrcDeviceId, void *SrcPtr,
    int32_t DstDeviceId, void *DstPtr, int64_t Size,
    __tgt_async_info *AsyncInfo);

int32_t WRAP(13data_exchangeEiPviS4_l)(GenericPluginTy *Plugin,
                                       int32_t SrcDeviceId, void *SrcPtr,
                                       int32_t DstDeviceId, void *DstPtr,
                                       int64_t Size) {
  if (diomp::isRecording()) {
    noteTransfer({Plugin, SrcDeviceId});
    noteTransfer({Plugin, DstDeviceId});
  }
  return REAL(13data_exchangeEiPviS4_l)(Plugin, SrcDeviceId, SrcPtr,
                                        DstDeviceId, DstPtr, Size);
}

int32_t WRAP(19data_exchange_asyncEiPviS4_lP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t SrcDeviceId, void *SrcPtr,
    int32_t DstDeviceId, void *DstPtr, int64_t Size,
    __tgt_async_info *AsyncInfo) {
  if (diomp::isRecording()) {
    noteTransfer({Plugin, SrcDeviceId});
    noteTransfer({Plugin, DstDeviceId});
  }
  return REAL(19data_exchange_asyncEiPviS4_lP16__tgt_async_info)(
      Plugin, SrcDeviceId, SrcPtr, DstDeviceId, DstPtr, Size, AsyncInfo);
}

#define CONCATENATE(First, Second) First##Second
#define REAL_OF(Name) CONCATENATE(__real_, Name)
#define WRAP_OF(Name) CONCATENATE(__wrap_, Name)

int REAL_OF(DIOMP_LLVM_UPDATE)(DIOMP_UPDATE_PARAMETERS);

int WRAP_OF(DIOMP_LLVM_UPDATE)(DIOMP_UPDATE_PARAMETERS) {
  Own.IsInUpdate = true;
  const int Outcome = REAL_OF(DIOMP_LLVM_UPDATE)(DIOMP_UPDATE_ARGUMENTS);
  Own.IsInUpdate = false;
  return Outcome;
}
}
// NOLINTEND(bugprone-reserved-identifier)
