//===-- Until21.h - What LLVM 19 to 21 share --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parts of what README.md asks of a version's Offload.h: images by the
// program's own description, allocators that return pointers.
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_VERSIONS_UNTIL21_H
#define DIOMP_VERSIONS_UNTIL21_H

#include "DeviceFunctions.h"
#include "PluginInterface.h"

#include <string>

/// Names of the functions that the linker redirects, where versions differ.
#define DIOMP_IS_PLUGIN_COMPATIBLE                                             \
  4llvm3omp6target6plugin15GenericPluginTy20is_plugin_compatibleEP18__tgt_device_image
#define DIOMP_IS_DEVICE_COMPATIBLE                                             \
  4llvm3omp6target6plugin15GenericPluginTy20is_device_compatibleEiP18__tgt_device_image

/// Of targetDataUpdate(), which executes `target update`.
#define DIOMP_UPDATE_PARAMETERS                                                \
  ident_t *Loc, DeviceTy &Device, int32_t ArgNum, void **ArgsBase,             \
      void **Args, int64_t *ArgSizes, int64_t *ArgTypes,                       \
      map_var_info_t *ArgNames, void **ArgMappers, AsyncInfoTy &AsyncInfo,     \
      bool FromMapper
#define DIOMP_UPDATE_ARGUMENTS                                                 \
  Loc, Device, ArgNum, ArgsBase, Args, ArgSizes, ArgTypes, ArgNames,           \
      ArgMappers, AsyncInfo, FromMapper

namespace diomp {

using namespace llvm::omp::target::plugin;

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

/// The size of an attached pointer.
template <typename AttachedTy> size_t attachedSize(const AttachedTy &) {
  return sizeof(void *);
}

// Errors.

inline void report(const std::string &Text) { REPORT("%s\n", Text.c_str()); }

// Kernels and devices of the plugin.

inline bool isDeviceMemory(int32_t Kind) {
  return Kind == TARGET_ALLOC_DEFAULT || Kind == TARGET_ALLOC_DEVICE ||
         Kind == TARGET_ALLOC_DEVICE_NON_BLOCKING;
}

using KernelBase = GenericKernelTy;

/// What a device gets to make an image of.
using ImageSource = const __tgt_device_image *;

/// What their DeviceBase has in common.
struct EarlierDevice : DeviceFunctions<ImageSource> {
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
