//===-- Transfer.h - Copies between the host and devices --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLUGIN_TRANSFER_H
#define DIOMP_PLUGIN_TRANSFER_H

#include "PluginInterface.h"

#include <cstdint>

namespace diomp {

using llvm::omp::target::plugin::GenericPluginTy;

/// A transfer between the host and the device.
struct Transfer {
  bool ToDevice;
  char *Device;
  char *Host;
  int64_t Size; ///< bytes
};

/// Issues it in the queue of AsyncInfo by LLVM's own function, and returns its
/// outcome.
int32_t startTransfer(GenericPluginTy &Plugin, int32_t DeviceId,
                      const Transfer &What, __tgt_async_info *AsyncInfo);

} // namespace diomp

#endif
