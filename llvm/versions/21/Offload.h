//===-- Offload.h - What the plugin needs of LLVM 21 ------------*- C++ -*-===//
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

#include "../From21.h"
#include "../Until21.h"
#include "PluginInterface.h"

namespace diomp {

constexpr int LLVMVersion = 21;

using namespace llvm::omp::target::plugin;

// Kernels and devices of the plugin.

using ThreadCounts = uint32_t *;
using BlockCounts = uint32_t *;

/// The functions of a device whose signatures depend on the version.
struct DeviceBase : EarlierDevice {
  using EarlierDevice::EarlierDevice;

  llvm::Error unloadBinaryImpl(DeviceImageTy *) final {
    return Plugin::success(); // The service ends with its images.
  }
  llvm::Expected<InfoTreeNode> obtainInfoImpl() final {
    InfoTreeNode Info;
    describe([&](const char *Key, const std::string &Value) {
      Info.add(Key, Value);
    });
    return Info;
  }
};

} // namespace diomp

#endif
