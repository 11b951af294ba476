//===-- Copies.cpp - Results of omp_target_memcpy ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's omp_target_memcpy starts a copy and waits for it in a destructor,
// which ignores the result: it returns 0 for a copy that fails on its way, for
// instance because the device is lost. overlay.cmake renames LLVM's functions,
// and those of this file, which the library exports instead, also look at the
// waits. The asynchronous forms run LLVM's functions in a task, whose result
// no program gets.
//
//===----------------------------------------------------------------------===//

#include "Copies.h"

#include "Shared/APITypes.h"
#include "omptarget.h"

#include <cstddef>
#include <utility>

static thread_local bool HasFailed = false;

void diomp::noteFailedWait() { HasFailed = true; }

/// Calls one of LLVM's functions.
template <typename FunctionTy, typename... ArgTys>
static int checked(FunctionTy *Function, ArgTys... Args) {
  HasFailed = false;
  const int Rc = Function(Args...);
  return std::exchange(HasFailed, false) && Rc == OFFLOAD_SUCCESS ? OFFLOAD_FAIL
                                                                  : Rc;
}

extern "C" {
int diompLLVMMemcpy(void *Dst, const void *Src, size_t Length, size_t DstOffset,
                    size_t SrcOffset, int DstDevice, int SrcDevice);
int diompLLVMMemcpyRect(void *Dst, const void *Src, size_t ElementSize,
                        int NumDims, const size_t *Volume,
                        const size_t *DstOffsets, const size_t *SrcOffsets,
                        const size_t *DstDimensions,
                        const size_t *SrcDimensions, int DstDevice,
                        int SrcDevice);

[[gnu::visibility("default")]] int
omp_target_memcpy(void *Dst, const void *Src, size_t Length, size_t DstOffset,
                  size_t SrcOffset, int DstDevice, int SrcDevice) {
  return checked(diompLLVMMemcpy, Dst, Src, Length, DstOffset, SrcOffset,
                 DstDevice, SrcDevice);
}

[[gnu::visibility("default")]] int
omp_target_memcpy_rect(void *Dst, const void *Src, size_t ElementSize,
                       int NumDims, const size_t *Volume,
                       const size_t *DstOffsets, const size_t *SrcOffsets,
                       const size_t *DstDimensions, const size_t *SrcDimensions,
                       int DstDevice, int SrcDevice) {
  return checked(diompLLVMMemcpyRect, Dst, Src, ElementSize, NumDims, Volume,
                 DstOffsets, SrcOffsets, DstDimensions, SrcDimensions,
                 DstDevice, SrcDevice);
}
}
