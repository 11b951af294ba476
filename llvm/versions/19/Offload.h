//===-- Offload.h - What the plugin needs of LLVM 19 ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ../README.md says what each version's file must have.
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_VERSION_OFFLOAD_H
#define DIOMP_VERSION_OFFLOAD_H

#include "../DeviceFunctions.h"
#include "PluginInterface.h"
#include "omptarget.h"

#include <string>

/// Defined in omptarget.cpp; every target construct begins with it. True: the
/// device must not be used.
extern bool checkDeviceAndCtors(int64_t &DeviceID, ident_t *Loc);

/// Names of the functions that the linker redirects, where versions differ.
#define DIOMP_IS_PLUGIN_COMPATIBLE                                             \
  4llvm3omp6target6plugin15GenericPluginTy20is_plugin_compatibleEP18__tgt_device_image
#define DIOMP_IS_DEVICE_COMPATIBLE                                             \
  4llvm3omp6target6plugin15GenericPluginTy20is_device_compatibleEiP18__tgt_device_image

namespace diomp {

constexpr int LLVMVersion = 19;

using namespace llvm::omp::target::plugin;

// Entries of a program.

using OffloadEntry = __tgt_offload_entry;
inline bool isOfOpenMP(const OffloadEntry &) { return true; }
inline void *addressOf(const OffloadEntry &Entry) { return Entry.addr; }
inline const char *nameOf(const OffloadEntry &Entry) { return Entry.name; }
inline uint64_t sizeOf(const OffloadEntry &Entry) { return Entry.size; }
inline int64_t flagsOf(const OffloadEntry &Entry) { return Entry.flags; }
inline int64_t dataOf(const OffloadEntry &Entry) { return Entry.data; }
/// Whether it reads entries of LLVM 21 and newer.
constexpr bool ReadsLaterEntries = false;

// Images of a program.

/// What compatibility checks get.
using ImageArgument = __tgt_device_image *;
inline llvm::StringRef bytesOf(ImageArgument Image) {
  const char *Begin = static_cast<const char *>(Image->ImageStart);
  return {Begin, static_cast<size_t>(
                     static_cast<const char *>(Image->ImageEnd) - Begin)};
}
inline ImageArgument argumentOf(__tgt_device_image &Image) { return &Image; }
inline bool isPluginCompatible(GenericPluginTy &Plugin, ImageArgument Image) {
  return Plugin.is_plugin_compatible(Image);
}
inline bool isDeviceCompatible(GenericPluginTy &Plugin, int32_t DeviceId,
                               ImageArgument Image) {
  return Plugin.is_device_compatible(DeviceId, Image);
}

/// Loads the images of the program that OpenMP's device has not loaded yet.
template <typename ManagerTy> bool loadImagesOf(ManagerTy &, int32_t Device) {
  int64_t Id = Device;
  return !checkDeviceAndCtors(Id, /*Loc=*/nullptr);
}

// Errors.

template <typename... ArgsTy>
llvm::Error makeError(const char *Format, ArgsTy... Args) {
  return Plugin::error(Format, Args...);
}
inline void report(const std::string &Text) { REPORT("%s\n", Text.c_str()); }

// Kernels and devices of the plugin.

inline bool isDeviceMemory(int32_t Kind) {
  return Kind == TARGET_ALLOC_DEFAULT || Kind == TARGET_ALLOC_DEVICE ||
         Kind == TARGET_ALLOC_DEVICE_NON_BLOCKING;
}

using ThreadCounts = uint32_t;
using BlockCounts = uint64_t;
using KernelBase = GenericKernelTy;

/// What a device gets to make an image of.
using ImageSource = const __tgt_device_image *;

/// The functions of a device whose signatures depend on the version.
struct DeviceBase : DeviceFunctions<ImageSource> {
  using DeviceFunctions::DeviceFunctions;

  void *allocate(size_t Size, void *, TargetAllocTy Kind) final {
    auto Memory = allocateMemory(Size, Kind);
    if (Memory)
      return *Memory;
    report(toString(Memory.takeError()));
    return nullptr;
  }
  int free(void *TgtPtr, TargetAllocTy) final {
    auto Err = freeMemory(TgtPtr);
    if (!Err)
      return OFFLOAD_SUCCESS;
    report(toString(std::move(Err)));
    return OFFLOAD_FAIL;
  }
  llvm::Expected<DeviceImageTy *>
  loadBinaryImpl(const __tgt_device_image *TgtImage, int32_t ImageId) final {
    return loadImage(TgtImage, ImageId);
  }
  llvm::Error synchronizeImpl(__tgt_async_info &AsyncInfo) final {
    return waitFor(AsyncInfo);
  }
  llvm::Error initDeviceInfoImpl(__tgt_device_info *Info) final {
    Info->Context = nullptr;
    Info->Device = this;
    return Plugin::success();
  }
  llvm::Error obtainInfoImpl(InfoQueueTy &Info) final {
    describe([&](const char *Key, const std::string &Value) {
      Info.add(Key, Value);
    });
    return Plugin::success();
  }
  llvm::Error getDeviceHeapSize(uint64_t &Value) final {
    Value = 0;
    return Plugin::success();
  }
  llvm::Error setDeviceHeapSize(uint64_t) final { return Plugin::success(); }
  // Done on the service's side of the device.
  bool shouldSetupDeviceEnvironment() const final { return false; }
  bool shouldSetupDeviceMemoryPool() const final { return false; }
};

} // namespace diomp

#endif
