//===-- Transfer.cpp - Copies between the host and devices ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libomptarget copies between the host and devices through
// GenericPluginTy::data_submit_async and data_retrieve_async. The linker's
// --wrap redirects these calls to this file, which lets several threads copy
// large private memory, and lets plans record.
//
//===----------------------------------------------------------------------===//

#include "Transfer.h"

#include "PinnedCopies.h"
#include "Plan.h"

#include <optional>

using namespace diomp;

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN4llvm3omp6target6plugin15GenericPluginTy##Name
#define WRAP(Name) __wrap__ZN4llvm3omp6target6plugin15GenericPluginTy##Name

extern "C" {
int32_t REAL(17data_submit_asyncEiPvS4_lP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t DeviceId, void *TgtPtr, void *HstPtr,
    int64_t Size, __tgt_async_info *AsyncInfo);
int32_t REAL(19data_retrieve_asyncEiPvS4_lP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t DeviceId, void *HstPtr, void *TgtPtr,
    int64_t Size, __tgt_async_info *AsyncInfo);
}

int32_t diomp::startTransfer(GenericPluginTy &Plugin, int32_t DeviceId,
                             const Transfer &What,
                             __tgt_async_info *AsyncInfo) {
  return What.ToDevice ? REAL(17data_submit_asyncEiPvS4_lP16__tgt_async_info)(
                             &Plugin, DeviceId, What.Device, What.Host,
                             What.Size, AsyncInfo)
                       : REAL(19data_retrieve_asyncEiPvS4_lP16__tgt_async_info)(
                             &Plugin, DeviceId, What.Host, What.Device,
                             What.Size, AsyncInfo);
}

static int32_t transfer(GenericPluginTy &Plugin, int32_t DeviceId,
                        const Transfer &What, __tgt_async_info *AsyncInfo) {
  const std::optional<int32_t> Copied =
      copyThroughPinned(Plugin, DeviceId, What, AsyncInfo);
  const int32_t Outcome =
      Copied ? *Copied : startTransfer(Plugin, DeviceId, What, AsyncInfo);
  if (isRecording())
    recordTransfer(Plugin, DeviceId, What, Outcome == OFFLOAD_SUCCESS);
  return Outcome;
}

extern "C" {
int32_t WRAP(17data_submit_asyncEiPvS4_lP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t DeviceId, void *TgtPtr, void *HstPtr,
    int64_t Size, __tgt_async_info *AsyncInfo) {
  return transfer(
      *Plugin, DeviceId,
      {true, static_cast<char *>(TgtPtr), static_cast<char *>(HstPtr), Size},
      AsyncInfo);
}

int32_t WRAP(19data_retrieve_asyncEiPvS4_lP16__tgt_async_info)(
    GenericPluginTy *Plugin, int32_t DeviceId, void *HstPtr, void *TgtPtr,
    int64_t Size, __tgt_async_info *AsyncInfo) {
  return transfer(
      *Plugin, DeviceId,
      {false, static_cast<char *>(TgtPtr), static_cast<char *>(HstPtr), Size},
      AsyncInfo);
}
}
// NOLINTEND(bugprone-reserved-identifier)
