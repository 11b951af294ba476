// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/kernels/embedded.h"

#if defined(DIOMP_REDUCTION_PTX)
// clang-format off
__asm__(".pushsection .rodata\n"
        ".globl diomp_reduction_ptx\n"
        ".hidden diomp_reduction_ptx\n"
        "diomp_reduction_ptx:\n"
        ".incbin \"" DIOMP_REDUCTION_PTX "\"\n"
        ".byte 0\n"
        ".popsection\n");
// clang-format on
extern "C" __attribute__((visibility("hidden"))) const char diomp_reduction_ptx[];
#endif

namespace diomp::device::kernels {

const char *reduction_ptx() {
#if defined(DIOMP_REDUCTION_PTX)
    return diomp_reduction_ptx;
#else
    return nullptr;
#endif
}

} // namespace diomp::device::kernels
