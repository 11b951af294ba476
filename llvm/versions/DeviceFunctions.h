//===-- DeviceFunctions.h - What a remote device does -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of a device that every version of LLVM has with another
// signature. DeviceBase in a version's Offload.h turns that version's virtual
// functions into these.
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_VERSIONS_DEVICEFUNCTIONS_H
#define DIOMP_VERSIONS_DEVICEFUNCTIONS_H

#include "PluginInterface.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace diomp {

using namespace llvm::omp::target::plugin;

using FactVisitor =
    llvm::function_ref<void(const char *Key, const std::string &Value)>;

/// \tparam ImageSourceTy What a device gets to make an image of.
template <typename ImageSourceTy> struct DeviceFunctions : GenericDeviceTy {
  using GenericDeviceTy::GenericDeviceTy;

  /// Null if the device has no memory of this kind.
  virtual llvm::Expected<void *> allocateMemory(size_t Size,
                                                TargetAllocTy Kind) = 0;
  virtual llvm::Error freeMemory(void *TgtPtr) = 0;
  virtual llvm::Expected<DeviceImageTy *> loadImage(ImageSourceTy Source,
                                                    int32_t ImageId) = 0;
  /// Waits for the queue of \p AsyncInfo, which ends with that.
  virtual llvm::Error waitFor(__tgt_async_info &AsyncInfo) = 0;
  virtual void describe(FactVisitor Visit) = 0;
};

} // namespace diomp

#endif
