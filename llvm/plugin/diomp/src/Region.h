//===-- Region.h - Launches of target regions -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLUGIN_REGION_H
#define DIOMP_PLUGIN_REGION_H

#include "Offload.h"
#include "PluginInterface.h"

#include <cstddef>
#include <cstdint>

namespace diomp {

/// What a launch does before its kernel starts: tells the runtime that a region
/// with calls begins, which ends when AsyncInfo has been waited for. False: the
/// device could not be prepared.
bool beginRegion(llvm::omp::target::plugin::GenericPluginTy &Plugin,
                 int32_t DeviceId, const __tgt_async_info *AsyncInfo);

/// Issues the kernel by LLVM's own function, and returns its outcome; nothing
/// is recorded, and no region begins.
int32_t startKernel(llvm::omp::target::plugin::GenericPluginTy &Plugin,
                    int32_t DeviceId, void *Entry, void **Args,
                    ptrdiff_t *Offsets, KernelArgsTy *KernelArgs,
                    __tgt_async_info *AsyncInfo);

} // namespace diomp

#endif
