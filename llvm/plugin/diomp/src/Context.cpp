//===-- Context.cpp - The driver's context of a thread ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libomptarget waits for events of data that another thread is mapping. The
// linker's --wrap redirects these calls to this file; launches and waits for
// regions are redirected to Endpoint.cpp.
//
//===----------------------------------------------------------------------===//

#include "Context.h"

using llvm::omp::target::plugin::GenericPluginTy;

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN4llvm3omp6target6plugin15GenericPluginTy##Name
#define WRAP(Name) __wrap__ZN4llvm3omp6target6plugin15GenericPluginTy##Name

extern "C" {
int32_t REAL(12create_eventEiPPv)(GenericPluginTy *Plugin, int32_t DeviceId,
                                  void **Event);
int32_t
    REAL(12record_eventEiPvP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                int32_t DeviceId, void *Event,
                                                __tgt_async_info *AsyncInfo);
int32_t REAL(10wait_eventEiPvP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                  int32_t DeviceId, void *Event,
                                                  __tgt_async_info *AsyncInfo);
int32_t REAL(10sync_eventEiPv)(GenericPluginTy *Plugin, int32_t DeviceId,
                               void *Event);
int32_t REAL(13destroy_eventEiPv)(GenericPluginTy *Plugin, int32_t DeviceId,
                                  void *Event);

int32_t WRAP(12create_eventEiPPv)(GenericPluginTy *Plugin, int32_t DeviceId,
                                  void **Event) {
  diomp::setContext(*Plugin, DeviceId);
  return REAL(12create_eventEiPPv)(Plugin, DeviceId, Event);
}

int32_t
WRAP(12record_eventEiPvP16__tgt_async_info)(GenericPluginTy *Plugin,
                                            int32_t DeviceId, void *Event,
                                            __tgt_async_info *AsyncInfo) {
  diomp::setContext(*Plugin, DeviceId);
  return REAL(12record_eventEiPvP16__tgt_async_info)(Plugin, DeviceId, Event,
                                                     AsyncInfo);
}

int32_t WRAP(10wait_eventEiPvP16__tgt_async_info)(GenericPluginTy *Plugin,
                                                  int32_t DeviceId, void *Event,
                                                  __tgt_async_info *AsyncInfo) {
  diomp::setContext(*Plugin, DeviceId);
  return REAL(10wait_eventEiPvP16__tgt_async_info)(Plugin, DeviceId, Event,
                                                   AsyncInfo);
}

int32_t WRAP(10sync_eventEiPv)(GenericPluginTy *Plugin, int32_t DeviceId,
                               void *Event) {
  diomp::setContext(*Plugin, DeviceId);
  return REAL(10sync_eventEiPv)(Plugin, DeviceId, Event);
}

int32_t WRAP(13destroy_eventEiPv)(GenericPluginTy *Plugin, int32_t DeviceId,
                                  void *Event) {
  diomp::setContext(*Plugin, DeviceId);
  return REAL(13destroy_eventEiPv)(Plugin, DeviceId, Event);
}
}
// NOLINTEND(bugprone-reserved-identifier)
