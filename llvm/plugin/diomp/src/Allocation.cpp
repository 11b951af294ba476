//===-- Allocation.cpp - Device memory from DiOMP's segments ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libomptarget allocates and frees all device memory through
// GenericPluginTy::data_alloc and data_delete. The linker's --wrap redirects
// these calls to this file. If the DiOMP runtime is loaded and running, the
// memory comes from the device's segment, so that other ranks can access it;
// otherwise the calls are forwarded to LLVM's functions.
//
// The idea of replacing libomptarget's allocations is that of DiOMP-Offloading
// (2025), section on device memory; doing it at link time is new here.
//
//===----------------------------------------------------------------------===//

#include "Offload.h"
#include "Plan.h"
#include "Runtime.h"

#include "offload/table.h"

#include <atomic>
#include <dlfcn.h>

using llvm::omp::target::plugin::GenericPluginTy;

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN4llvm3omp6target6plugin15GenericPluginTy##Name
#define WRAP(Name) __wrap__ZN4llvm3omp6target6plugin15GenericPluginTy##Name

extern "C" {
void *REAL(10data_allocEilPvi)(GenericPluginTy *Plugin, int32_t DeviceId,
                               int64_t Size, void *HostPtr, int32_t Kind);
int32_t REAL(11data_deleteEiPvi)(GenericPluginTy *Plugin, int32_t DeviceId,
                                 void *TgtPtr, int32_t Kind);
}

static std::atomic<const diomp_offload_table *> GivenTable{nullptr};

void diomp::setRuntimeTable(const diomp_offload_table &Table) {
  GivenTable.store(&Table, std::memory_order_release);
}

const diomp_offload_table *diomp::runtimeTable() {
  if (const diomp_offload_table *Given =
          GivenTable.load(std::memory_order_acquire))
    return Given;
  static const diomp_offload_table *const Table = [] {
    auto Function = reinterpret_cast<diomp_offload_table_function>(
        dlsym(RTLD_DEFAULT, "diomp_offload_table"));
    const diomp_offload_table *Found = Function ? Function() : nullptr;
    return Found && Found->version >= DIOMP_OFFLOAD_TABLE_OLDEST ? Found
                                                                 : nullptr;
  }();
  return Table;
}

static void *allocate(GenericPluginTy *Plugin, int32_t DeviceId, int64_t Size,
                      void *HostPtr, int32_t Kind) {
  if (const diomp_offload_table *Table = diomp::runtimeTable();
      Table && Size > 0 && diomp::isDeviceMemory(Kind)) {
    const diomp_offload_request Request{diomp::nameOfPlugin(*Plugin), DeviceId,
                                        Plugin->getUserId(DeviceId), Size,
                                        HostPtr};
    if (void *FromSegment = Table->allocate(&Request))
      return FromSegment;
  }
  return REAL(10data_allocEilPvi)(Plugin, DeviceId, Size, HostPtr, Kind);
}

extern "C" void *WRAP(10data_allocEilPvi)(GenericPluginTy *Plugin,
                                          int32_t DeviceId, int64_t Size,
                                          void *HostPtr, int32_t Kind) {
  void *Memory = allocate(Plugin, DeviceId, Size, HostPtr, Kind);
  if (Memory && diomp::isDeviceMemory(Kind))
    diomp::noteAllocation(*Plugin, DeviceId, Memory, Size);
  return Memory;
}

extern "C" int32_t WRAP(11data_deleteEiPvi)(GenericPluginTy *Plugin,
                                            int32_t DeviceId, void *TgtPtr,
                                            int32_t Kind) {
  diomp::noteRelease(*Plugin, DeviceId, TgtPtr);
  if (const diomp_offload_table *Table = diomp::runtimeTable();
      Table && TgtPtr && Table->release(Plugin->getUserId(DeviceId), TgtPtr))
    return OFFLOAD_SUCCESS;
  return REAL(11data_deleteEiPvi)(Plugin, DeviceId, TgtPtr, Kind);
}
// NOLINTEND(bugprone-reserved-identifier)
