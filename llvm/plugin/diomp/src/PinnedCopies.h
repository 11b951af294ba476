//===-- PinnedCopies.h - Private host memory from and to GPUs ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLUGIN_PINNED_COPIES_H
#define DIOMP_PLUGIN_PINNED_COPIES_H

#include "Transfer.h"

#include <cstdint>
#include <optional>

namespace diomp {

/// Copies large private host memory through pinned memory. Blocks until Host
/// has been read or written, as the driver does for such memory. Returns the
/// outcome, or nothing if the driver is to copy: Size is small, the memory is
/// pinned, the device is not NVIDIA's, or another thread copies to or from
/// it this way. Thread-safe.
std::optional<int32_t> copyThroughPinned(GenericPluginTy &Plugin,
                                         int32_t DeviceId, const Transfer &What,
                                         __tgt_async_info *AsyncInfo);

/// Frees the pinned memory and ends the threads. Call before the plugins end;
/// no copy may be under way.
void endPinnedCopies();

} // namespace diomp

#endif
