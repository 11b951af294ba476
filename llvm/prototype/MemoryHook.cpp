//===-- MemoryHook.cpp - Device memory of liboffload in segments -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prototype for LLVM 23 and 24, where libomptarget allocates device memory
// by liboffload's olMemAlloc and olMemFree instead of
// GenericPluginTy::data_alloc and data_delete: what
// llvm/plugin/diomp/src/Allocation.cpp does, in terms of these functions. It is
// linked with --wrap=olMemAlloc,--wrap=olMemFree; built against LLVM 22's
// liboffload and used by tests/offload/memory-hook.sh only.
//
// The device number that the runtime expects is the index among all devices of
// GPUs: a libomptarget that is built with this knows its own.
//
//===----------------------------------------------------------------------===//

#include "offload/table.h"

#include <OffloadAPI.h>
#include <cstdint>
#include <dlfcn.h>

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
extern "C" {
ol_result_t __real_olMemAlloc(ol_device_handle_t Device, ol_alloc_type_t Type,
                              size_t Size, void **Allocation);
ol_result_t __real_olMemFree(void *Address);
}

namespace {

const diomp_offload_table *runtimeTable() {
  static const diomp_offload_table *const Table = [] {
    auto Function = reinterpret_cast<diomp_offload_table_function>(
        dlsym(RTLD_DEFAULT, "diomp_offload_table"));
    return Function ? Function() : nullptr;
  }();
  return Table;
}

ol_platform_backend_t backendOf(ol_device_handle_t Device) {
  ol_platform_handle_t Platform = nullptr;
  ol_platform_backend_t Backend = OL_PLATFORM_BACKEND_UNKNOWN;
  if (olGetDeviceInfo(Device, OL_DEVICE_INFO_PLATFORM, sizeof Platform,
                      &Platform) != OL_SUCCESS ||
      olGetPlatformInfo(Platform, OL_PLATFORM_INFO_BACKEND, sizeof Backend,
                        &Backend) != OL_SUCCESS)
    return OL_PLATFORM_BACKEND_UNKNOWN;
  return Backend;
}

struct Position {
  ol_device_handle_t Wanted;
  ol_platform_backend_t Backend;
  int32_t InPlugin = 0;
  int32_t OfGPUs = 0;
  bool Found = false;
};

bool advance(ol_device_handle_t Device, void *UserData) {
  auto &At = *static_cast<Position *>(UserData);
  At.Found = Device == At.Wanted;
  if (At.Found)
    return false;
  ol_platform_backend_t Backend = backendOf(Device);
  At.InPlugin += Backend == At.Backend;
  At.OfGPUs += Backend != OL_PLATFORM_BACKEND_HOST;
  return true;
}

void *allocateInSegment(ol_device_handle_t Device, size_t Size) {
  const diomp_offload_table *Table = runtimeTable();
  if (!Table || Size == 0 || Size > INT64_MAX)
    return nullptr;
  Position At{Device, backendOf(Device)};
  const char *Plugin = At.Backend == OL_PLATFORM_BACKEND_CUDA     ? "cuda"
                       : At.Backend == OL_PLATFORM_BACKEND_AMDGPU ? "amdgpu"
                                                                  : nullptr;
  if (!Plugin || olIterateDevices(advance, &At) != OL_SUCCESS || !At.Found)
    return nullptr;
  const diomp_offload_request Request{Plugin, At.InPlugin, At.OfGPUs,
                                      static_cast<int64_t>(Size), nullptr};
  return Table->allocate(&Request);
}

} // namespace

// Memory of a segment is not in liboffload's table of allocations: olGetMemInfo
// does not know it. libomptarget does not ask.
extern "C" ol_result_t __wrap_olMemAlloc(ol_device_handle_t Device,
                                         ol_alloc_type_t Type, size_t Size,
                                         void **Allocation) {
  if (Type == OL_ALLOC_TYPE_DEVICE && Allocation)
    if (void *Memory = allocateInSegment(Device, Size)) {
      *Allocation = Memory;
      return OL_SUCCESS;
    }
  return __real_olMemAlloc(Device, Type, Size, Allocation);
}

extern "C" ol_result_t __wrap_olMemFree(void *Address) {
  const diomp_offload_table *Table = runtimeTable();
  // olMemFree names no device; the runtime finds it by the address. Waits for
  // transfers that use the memory, whosever it is.
  if (Table && Address && Table->release(-1, Address))
    return OL_SUCCESS;
  return __real_olMemFree(Address);
}
// NOLINTEND(bugprone-reserved-identifier)
