//===-- Local.cpp - LLVM's plugins for a device service ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session of a device service has no program and no OpenMP of its own: it
// drives one device of one of LLVM's plugins, below libomptarget's mapping.
//
//===----------------------------------------------------------------------===//

#include "GlobalHandler.h"
#include "Offload.h"
#include "Runtime.h"
#include "Utils/ELF.h"

#include "offload/plugin_table.h"

#include <cstring>
#include <dlfcn.h>
#include <string>
#include <utility>
#include <vector>

using namespace llvm;
using namespace llvm::omp::target::plugin;

#define PLUGIN_TARGET(Name) extern "C" GenericPluginTy *createPlugin_##Name();
#include "Shared/Targets.def"

namespace {

GenericPluginTy *Plugin = nullptr;

int succeeded(int32_t Code) { return Code == OFFLOAD_SUCCESS ? 0 : -1; }
void *toPointer(uint64_t Address) { return reinterpret_cast<void *>(Address); }
uint64_t toNumber(const void *Pointer) {
  return reinterpret_cast<uint64_t>(Pointer);
}

int start(const char *Name) {
#define PLUGIN_TARGET(Each)                                                    \
  if (std::strcmp(Name, #Each) == 0 && std::strcmp(Name, "diomp") != 0)        \
    Plugin = createPlugin_##Each();
#include "Shared/Targets.def"
  if (!Plugin)
    return -1;
  if (auto Err = Plugin->init()) {
    diomp::report(toString(std::move(Err)));
    return -1;
  }
  return Plugin->getNumDevices();
}

uint32_t machine() { return Plugin->getMagicElfBits(); }

int use(int Device) {
  // A session has one device: the runtime of its regions calls it device 0.
  Plugin->set_device_identifier(0, Device);
  return succeeded(Plugin->init_device(Device));
}

void *load(int Device, const void *Image, uint64_t Size) {
  // Never freed; the image also lives as long as the process.
  auto *Target = new __tgt_device_image{};
  Target->ImageStart = const_cast<void *>(Image);
  Target->ImageEnd = static_cast<char *>(Target->ImageStart) + Size;
  if (!diomp::isDeviceCompatible(*Plugin, Device, diomp::argumentOf(*Target))) {
    diomp::report("the image is not for the architecture of device " +
                  std::to_string(Device));
    return nullptr;
  }
  __tgt_device_binary Binary{};
  if (Plugin->load_binary(Device, Target, &Binary) != OFFLOAD_SUCCESS)
    return nullptr;
  return toPointer(Binary.handle);
}

/// Looks the symbol up in the image's own table: names of kernels' data and of
/// indirectly called functions begin like those of kernels.
bool isKernel(const DeviceImageTy &Image, StringRef Name) {
  if (!Name.starts_with("__omp_offloading_"))
    return false;
  auto File = object::ELF64LEObjectFile::create(Image.getMemoryBuffer());
  if (!File) {
    consumeError(File.takeError());
    return true;
  }
  auto Found = ::utils::elf::getSymbol(*File, Name);
  if (!Found) {
    consumeError(Found.takeError());
    return true;
  }
  return !*Found || (*Found)->getELFType() == ELF::STT_FUNC;
}

uint64_t symbol(void *Image, const char *Name, uint64_t Size) {
  __tgt_device_binary Binary{};
  Binary.handle = toNumber(Image);
  void *Found = nullptr;
  auto &Loaded = *static_cast<DeviceImageTy *>(Image);
  if (isKernel(Loaded, Name))
    return Plugin->get_function(Binary, Name, &Found) == OFFLOAD_SUCCESS
               ? toNumber(Found)
               : 0;
  // Not every symbol is a variable, so an error is not reported.
  GlobalTy Global(Name, Size);
  if (auto Err = Plugin->getGlobalHandler().getGlobalMetadataFromDevice(
          Loaded.getDevice(), Loaded, Global)) {
    consumeError(std::move(Err));
    return 0;
  }
  return toNumber(Global.getPtr());
}

const char *architecture(int Device) {
  static thread_local std::string Name;
  Name = Plugin->getDevice(Device).getComputeUnitKind();
  return Name.c_str();
}

uint64_t memoryBytes(int Device) {
  uint64_t Size = 0;
  if (auto Err = Plugin->getDevice(Device).getDeviceMemorySize(Size)) {
    consumeError(std::move(Err));
    return 0;
  }
  return Size;
}

uint64_t allocate(int Device, uint64_t Size) {
  return toNumber(
      Plugin->data_alloc(Device, Size, nullptr, TARGET_ALLOC_DEVICE));
}
int release(int Device, uint64_t Address) {
  return succeeded(
      Plugin->data_delete(Device, toPointer(Address), TARGET_ALLOC_DEVICE));
}
int write(int Device, uint64_t To, const void *From, uint64_t Size) {
  return succeeded(Plugin->data_submit(Device, toPointer(To),
                                       const_cast<void *>(From), Size));
}
int read(int Device, void *To, uint64_t From, uint64_t Size) {
  return succeeded(Plugin->data_retrieve(Device, To, toPointer(From), Size));
}
int copy(int Device, uint64_t To, uint64_t From, uint64_t Size) {
  if (Plugin->is_data_exchangable(Device, Device))
    return succeeded(Plugin->data_exchange(Device, toPointer(From), Device,
                                           toPointer(To), Size));
  std::vector<char> Buffer(Size);
  return read(Device, Buffer.data(), From, Size) == 0 &&
                 write(Device, To, Buffer.data(), Size) == 0
             ? 0
             : -1;
}

int launch(int Device, const diomp_remote_launch *Launch) {
  // The client's plugin has put its own launch environment in front; the
  // device's plugin adds one.
  const bool HasEnvironment =
      Launch->version >= OMP_KERNEL_ARG_MIN_VERSION_WITH_DYN_PTR;
  const size_t Skipped = HasEnvironment && Launch->num_arguments > 0 ? 1 : 0;
  std::vector<void *> Arguments(Launch->num_arguments - Skipped);
  if (!Arguments.empty())
    std::memcpy(Arguments.data(),
                static_cast<void *const *>(Launch->arguments) + Skipped,
                Arguments.size() * sizeof(void *));
  std::vector<ptrdiff_t> Offsets(Arguments.size(), 0);
  KernelArgsTy Kernel{};
  Kernel.Version = Launch->version;
  Kernel.NumArgs = static_cast<uint32_t>(Arguments.size());
  std::memcpy(Kernel.NumTeams, Launch->num_teams, sizeof(Kernel.NumTeams));
  std::memcpy(Kernel.ThreadLimit, Launch->thread_limit,
              sizeof(Kernel.ThreadLimit));
  Kernel.Tripcount = Launch->trip_count;
  Kernel.DynCGroupMem = Launch->dynamic_memory_bytes;
  __tgt_async_info Queue;
  if (Plugin->launch_kernel(Device, toPointer(Launch->kernel), Arguments.data(),
                            Offsets.data(), &Kernel, &Queue) != OFFLOAD_SUCCESS)
    return -1;
  // A plugin that runs kernels synchronously creates no queue.
  return Queue.Queue ? succeeded(Plugin->synchronize(Device, &Queue)) : 0;
}

int enter(int Device) {
  auto Err = Plugin->getDevice(Device).setContext();
  if (!Err)
    return 0;
  diomp::report(toString(std::move(Err)));
  return -1;
}

void useRuntime(const diomp_offload_table *Runtime) {
  diomp::setRuntimeTable(*Runtime);
}

const diomp_plugin_table Table = {DIOMP_PLUGIN_TABLE_VERSION,
                                  start,
                                  machine,
                                  use,
                                  load,
                                  symbol,
                                  allocate,
                                  release,
                                  write,
                                  read,
                                  copy,
                                  launch,
                                  enter,
                                  architecture,
                                  memoryBytes,
                                  useRuntime};

} // namespace

/// Named on the linker's command line; no other reference pulls this file out
/// of its archive.
extern "C" __attribute__((constructor)) void diompHandOverPlugins() {
  if (auto Callback = reinterpret_cast<diomp_take_plugins_function>(
          dlsym(RTLD_DEFAULT, "diomp_take_plugins")))
    Callback(&Table);
}
