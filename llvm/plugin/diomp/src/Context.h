//===-- Context.h - The driver's context of a thread ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLUGIN_CONTEXT_H
#define DIOMP_PLUGIN_CONTEXT_H

#include "PluginInterface.h"

#include <cstdint>
#include <utility>

namespace diomp {

/// Makes the device's context that of the calling thread. LLVM's plugin for
/// CUDA does so for allocations and copies, but not for launches, waits and
/// events, with which a thread may begin, or turn to another device. After a
/// failure the driver rejects what follows, and the plugin reports that.
inline bool setContext(llvm::omp::target::plugin::GenericPluginTy &Plugin,
                       int32_t DeviceId) {
  auto Err = Plugin.getDevice(DeviceId).setContext();
  const bool Failed = static_cast<bool>(Err);
  llvm::consumeError(std::move(Err));
  return !Failed;
}

} // namespace diomp

#endif
