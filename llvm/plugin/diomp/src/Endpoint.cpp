//===-- Endpoint.cpp - Calls of the runtime in target regions ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code for GPUs that makes calls (include/diomp/device.h) reads the address of
// its endpoint from a variable of the image. The linker's --wrap redirects
// three calls of libomptarget's core to this file: when an image with such
// calls is loaded, its variable is recorded; before each region the runtime
// updates the endpoint, and the variable is written if it has changed; when
// libomptarget has waited for a region, its requests are completed and errors
// of its calls are reported. Regions are told apart by their async info: other
// operations are waited for by the same calls. A program without such images
// pays one load for each.
//
//===----------------------------------------------------------------------===//

#include "Region.h"

#include "Context.h"
#include "Copies.h"
#include "GlobalHandler.h"
#include "Offload.h"
#include "Plan.h"
#include "Runtime.h"
#include "Utils/ELF.h"

#include "offload/table.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

using namespace llvm;
using namespace llvm::omp::target::plugin;

namespace {

/// The variable of one image on one device.
struct EndpointVariable {
  GenericPluginTy *Plugin;
  int32_t DeviceId;
  void *Address;
  uint64_t Value;
};

std::atomic<bool> AnyVariable{false};
/// Guards variables(). Held while the runtime updates an endpoint, which
/// may wait for the progress threads of other ranks.
std::mutex VariablesMutex;

/// A region that the runtime has begun and that has not been waited for.
struct RunningRegion {
  const __tgt_async_info *AsyncInfo;
  int32_t Device; ///< OpenMP's number
};

/// Guarded by VariablesMutex; never destroyed.
std::vector<RunningRegion> &regions() {
  static auto *const Only = new std::vector<RunningRegion>;
  return *Only;
}

/// Never destroyed: regions may end after the destructors of this library.
std::vector<EndpointVariable> &variables() {
  static auto *const Only = new std::vector<EndpointVariable>;
  return *Only;
}

const diomp_offload_table *tableWithRegions() {
  const diomp_offload_table *Table = diomp::runtimeTable();
  return Table && Table->version >= 3 ? Table : nullptr;
}

/// Whether the image's own table has the symbol: the driver would report a
/// missing one as an error.
bool hasSymbol(const DeviceImageTy &Image, StringRef Name) {
  auto File = object::ELF64LEObjectFile::create(Image.getMemoryBuffer());
  if (!File) {
    consumeError(File.takeError());
    return false;
  }
  auto Found = ::utils::elf::getSymbol(*File, Name);
  if (!Found) {
    consumeError(Found.takeError());
    return false;
  }
  return Found->has_value();
}

void recordVariable(GenericPluginTy &Plugin, int32_t DeviceId,
                    DeviceImageTy &Image) {
  if (!hasSymbol(Image, DIOMP_ENDPOINT_FUNCTION) ||
      !hasSymbol(Image, DIOMP_ENDPOINT_VARIABLE))
    return;
  GlobalTy Global(DIOMP_ENDPOINT_VARIABLE, sizeof(uint64_t));
  if (auto Err = Plugin.getGlobalHandler().getGlobalMetadataFromDevice(
          Image.getDevice(), Image, Global)) {
    diomp::report("calls in target regions fail: " + toString(std::move(Err)));
    return;
  }
  std::lock_guard<std::mutex> Lock(VariablesMutex);
  variables().push_back({&Plugin, DeviceId, Global.getPtr(), 0});
  AnyVariable.store(true, std::memory_order_release);
}

bool usesCalls(const GenericPluginTy &Plugin, int32_t DeviceId) {
  for (const EndpointVariable &Each : variables())
    if (Each.Plugin == &Plugin && Each.DeviceId == DeviceId)
      return true;
  return false;
}

void endRegion(const diomp_offload_table &Table, int32_t Device) {
  if (Table.version >= 4)
    Table.end_region(Device);
  else
    Table.finish_region(Device);
}

/// False if a variable could not be written.
bool prepare(GenericPluginTy &Plugin, int32_t DeviceId,
             const __tgt_async_info *AsyncInfo) {
  const diomp_offload_table *Table = tableWithRegions();
  std::lock_guard<std::mutex> Lock(VariablesMutex);
  if (!Table || !usesCalls(Plugin, DeviceId))
    return true;
  const int32_t Device = Plugin.getUserId(DeviceId);
  const diomp_offload_request Request{diomp::nameOfPlugin(Plugin), DeviceId,
                                      Device, 0, nullptr};
  uint64_t Value = Table->version >= 4 ? Table->begin_region(&Request)
                                       : Table->prepare_region(&Request);
  if (Value)
    regions().push_back({AsyncInfo, Device});
  for (EndpointVariable &Each : variables()) {
    if (Each.Plugin != &Plugin || Each.DeviceId != DeviceId ||
        Each.Value == Value)
      continue;
    if (Plugin.data_submit(DeviceId, Each.Address, &Value, sizeof(Value)) !=
        OFFLOAD_SUCCESS)
      return false;
    Each.Value = Value;
  }
  return true;
}

/// Ends the regions that were started with this async info.
void finish(const __tgt_async_info *AsyncInfo) {
  const diomp_offload_table *Table = tableWithRegions();
  std::vector<RunningRegion> Ended;
  {
    std::lock_guard<std::mutex> Lock(VariablesMutex);
    auto HasEnded = [&](const RunningRegion &Each) {
      return Each.AsyncInfo == AsyncInfo;
    };
    std::copy_if(regions().begin(), regions().end(), std::back_inserter(Ended),
                 HasEnded);
    regions().erase(
        std::remove_if(regions().begin(), regions().end(), HasEnded),
        regions().end());
  }
  for (const RunningRegion &Each : Ended)
    if (Table)
      endRegion(*Table, Each.Device);
}

} // namespace

bool diomp::beginRegion(GenericPluginTy &Plugin, int32_t DeviceId,
                        const __tgt_async_info *AsyncInfo) {
  return !AnyVariable.load(std::memory_order_acquire) ||
         prepare(Plugin, DeviceId, AsyncInfo);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN4llvm3omp6target6plugin15GenericPluginTy##Name
#define WRAP(Name) __wrap__ZN4llvm3omp6target6plugin15GenericPluginTy##Name

extern "C" {
int32_t REAL(11load_binaryEiP18__tgt_device_imageP19__tgt_device_binary)(
    GenericPluginTy *Plugin, int32_t DeviceId, __tgt_device_image *Image,
    __tgt_device_binary *Binary);
int32_t REAL(13launch_kernelEiPvPS4_PlP12KernelArgsTyP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t DeviceId, void *Entry, void **Args,
    ptrdiff_t *Offsets, KernelArgsTy *KernelArgs, __tgt_async_info *AsyncInfo);
int32_t REAL(11synchronizeEiP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                 int32_t DeviceId,
                                                 __tgt_async_info *AsyncInfo);
int32_t REAL(11query_asyncEiP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                 int32_t DeviceId,
                                                 __tgt_async_info *AsyncInfo);
}

int32_t diomp::startKernel(GenericPluginTy &Plugin, int32_t DeviceId,
                           void *Entry, void **Args, ptrdiff_t *Offsets,
                           KernelArgsTy *KernelArgs,
                           __tgt_async_info *AsyncInfo) {
  setContext(Plugin, DeviceId);
  return REAL(13launch_kernelEiPvPS4_PlP12KernelArgsTyP16__tgt_async_info)(
      &Plugin, DeviceId, Entry, Args, Offsets, KernelArgs, AsyncInfo);
}

static size_t numAllocations(const __tgt_async_info *AsyncInfo) {
  return AsyncInfo ? AsyncInfo->AssociatedAllocations.size() : 0;
}

extern "C" {
int32_t WRAP(11load_binaryEiP18__tgt_device_imageP19__tgt_device_binary)(
    GenericPluginTy *Plugin, int32_t DeviceId, __tgt_device_image *Image,
    __tgt_device_binary *Binary) {
  int32_t Outcome =
      REAL(11load_binaryEiP18__tgt_device_imageP19__tgt_device_binary)(
          Plugin, DeviceId, Image, Binary);
  const Triple::ArchType Arch = Plugin->getTripleArch();
  if (Outcome == OFFLOAD_SUCCESS &&
      (Arch == Triple::nvptx64 || Arch == Triple::amdgcn))
    recordVariable(*Plugin, DeviceId,
                   *reinterpret_cast<DeviceImageTy *>(Binary->handle));
  return Outcome;
}

int32_t WRAP(13launch_kernelEiPvPS4_PlP12KernelArgsTyP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t DeviceId, void *Entry, void **Args,
    ptrdiff_t *Offsets, KernelArgsTy *KernelArgs, __tgt_async_info *AsyncInfo) {
  const bool MakesCalls = AnyVariable.load(std::memory_order_acquire);
  const size_t AllocatedBefore = numAllocations(AsyncInfo);
  std::optional<KernelArgsTy> Recorded; // before the plugin changes them
  if (diomp::isRecording()) {
    Recorded = *KernelArgs;
    diomp::noteLaunch(true);
  }
  int32_t Outcome = OFFLOAD_FAIL;
  if (!MakesCalls || prepare(*Plugin, DeviceId, AsyncInfo))
    Outcome = diomp::startKernel(*Plugin, DeviceId, Entry, Args, Offsets,
                                 KernelArgs, AsyncInfo);
  if (MakesCalls && Outcome != OFFLOAD_SUCCESS)
    finish(AsyncInfo);
  if (Recorded) {
    diomp::noteLaunch(false);
    diomp::recordLaunch(*Plugin, DeviceId, Entry, Args, Offsets, *Recorded,
                        numAllocations(AsyncInfo) > AllocatedBefore,
                        Outcome == OFFLOAD_SUCCESS);
  }
  return Outcome;
}

int32_t WRAP(11synchronizeEiP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                 int32_t DeviceId,
                                                 __tgt_async_info *AsyncInfo) {
  diomp::setContext(*Plugin, DeviceId);
  int32_t Outcome =
      REAL(11synchronizeEiP16__tgt_async_info)(Plugin, DeviceId, AsyncInfo);
  if (Outcome != OFFLOAD_SUCCESS)
    diomp::noteFailedWait();
  if (AnyVariable.load(std::memory_order_acquire))
    finish(AsyncInfo);
  return Outcome;
}

int32_t WRAP(11query_asyncEiP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                 int32_t DeviceId,
                                                 __tgt_async_info *AsyncInfo) {
  diomp::setContext(*Plugin, DeviceId);
  int32_t Outcome =
      REAL(11query_asyncEiP16__tgt_async_info)(Plugin, DeviceId, AsyncInfo);
  if (AnyVariable.load(std::memory_order_acquire) && !AsyncInfo->Queue)
    finish(AsyncInfo);
  return Outcome;
}
}
// NOLINTEND(bugprone-reserved-identifier)
