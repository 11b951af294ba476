//===-- Offload.h - What the plugin needs of LLVM 22 ------------*- C++ -*-===//
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
#include "../From21.h"
#include "PluginInterface.h"

#include <memory>
#include <string>
#include <utility>

/// Names of the functions that the linker redirects, where versions differ.
#define DIOMP_IS_PLUGIN_COMPATIBLE                                             \
  4llvm3omp6target6plugin15GenericPluginTy18isPluginCompatibleENS_9StringRefE
#define DIOMP_IS_DEVICE_COMPATIBLE                                             \
  4llvm3omp6target6plugin15GenericPluginTy18isDeviceCompatibleEiNS_9StringRefE

/// Of targetDataUpdate(), which executes `target update`.
#define DIOMP_UPDATE_PARAMETERS                                                \
  ident_t *Loc, DeviceTy &Device, int32_t ArgNum, void **ArgsBase,             \
      void **Args, int64_t *ArgSizes, int64_t *ArgTypes,                       \
      map_var_info_t *ArgNames, void **ArgMappers, AsyncInfoTy &AsyncInfo,     \
      AttachInfoTy *AttachInfo, bool FromMapper
#define DIOMP_UPDATE_ARGUMENTS                                                 \
  Loc, Device, ArgNum, ArgsBase, Args, ArgSizes, ArgTypes, ArgNames,           \
      ArgMappers, AsyncInfo, AttachInfo, FromMapper

namespace diomp {

constexpr int LLVMVersion = 22;

using namespace llvm::omp::target::plugin;

// Images of a program.

/// What compatibility checks get.
using ImageArgument = llvm::StringRef;
inline llvm::StringRef bytesOf(ImageArgument Image) { return Image; }
inline ImageArgument argumentOf(__tgt_device_image &Image) {
  const char *Begin = static_cast<const char *>(Image.ImageStart);
  return {Begin, static_cast<size_t>(static_cast<const char *>(Image.ImageEnd) -
                                     Begin)};
}
inline bool isPluginCompatible(GenericPluginTy &Plugin, ImageArgument Image) {
  return Plugin.isPluginCompatible(Image);
}
inline bool isDeviceCompatible(GenericPluginTy &Plugin, int32_t DeviceId,
                               ImageArgument Image) {
  return Plugin.isDeviceCompatible(DeviceId, Image);
}

/// The size of an attached pointer, or of a descriptor with one.
template <typename AttachedTy> size_t attachedSize(const AttachedTy &Attached) {
  return static_cast<size_t>(Attached.PtrSize);
}

// Errors.

inline void report(const std::string &Text) { REPORT() << Text; }

// Kernels and devices of the plugin.

inline bool isDeviceMemory(int32_t Kind) {
  return Kind == TARGET_ALLOC_DEFAULT || Kind == TARGET_ALLOC_DEVICE;
}

using ThreadCounts = uint32_t *;
using BlockCounts = uint32_t *;

struct KernelBase : GenericKernelTy {
  using GenericKernelTy::GenericKernelTy;
  llvm::Expected<uint64_t> maxGroupSize(GenericDeviceTy &,
                                        uint64_t) const final {
    return makeError("not known of a remote device");
  }
};

/// What a device gets to make an image of.
using ImageSource = std::unique_ptr<llvm::MemoryBuffer>;

/// The functions of a device whose signatures depend on the version.
struct DeviceBase : DeviceFunctions<ImageSource> {
  using DeviceFunctions::DeviceFunctions;

  llvm::Expected<void *> allocate(size_t Size, void *,
                                  TargetAllocTy Kind) final {
    return allocateMemory(Size, Kind);
  }
  llvm::Error free(void *TgtPtr, TargetAllocTy) final {
    return freeMemory(TgtPtr);
  }
  llvm::Expected<DeviceImageTy *>
  loadBinaryImpl(std::unique_ptr<llvm::MemoryBuffer> &&TgtImage,
                 int32_t ImageId) final {
    return loadImage(std::move(TgtImage), ImageId);
  }
  llvm::Error unloadBinaryImpl(DeviceImageTy *) final {
    return Plugin::success(); // The service ends with its images.
  }
  /// libomptarget always releases the queue.
  llvm::Error synchronizeImpl(__tgt_async_info &AsyncInfo,
                              bool /*ReleaseQueue*/) final {
    return waitFor(AsyncInfo);
  }
  llvm::Expected<InfoTreeNode> obtainInfoImpl() final {
    InfoTreeNode Info;
    describe([&](const char *Key, const std::string &Value) {
      Info.add(Key, Value);
    });
    return Info;
  }
  /// Queues are in order.
  llvm::Error dataFence(__tgt_async_info *) final { return Plugin::success(); }
  // Only liboffload's interface calls these.
  llvm::Error dataFillImpl(void *, const void *, int64_t, int64_t,
                           AsyncInfoWrapperTy &) final {
    return unsupported("fill memory");
  }
  llvm::Error enqueueHostCallImpl(void (*)(void *), void *,
                                  AsyncInfoWrapperTy &) final {
    return unsupported("enqueue calls of the host");
  }
  llvm::Expected<bool> isEventCompleteImpl(void *, AsyncInfoWrapperTy &) final {
    return unsupported("query events");
  }
  llvm::Expected<bool> hasPendingWorkImpl(AsyncInfoWrapperTy &) final {
    return true;
  }

private:
  static llvm::Error unsupported(const char *What) {
    return Plugin::error(::error::ErrorCode::UNSUPPORTED,
                         "remote devices do not %s", What);
  }
};

} // namespace diomp

#endif
