// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/kernels/embedded.h"

// Neither joined strings nor a declared name can be parenthesised.
// NOLINTBEGIN(bugprone-macro-parentheses)
// clang-format off
#define DIOMP_EMBED(name, alignment, file)                                                         \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign " #alignment "\n"                                                             \
            ".globl " #name "\n"                                                                   \
            ".hidden " #name "\n"                                                                  \
            #name ":\n"                                                                            \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern "C" __attribute__((visibility("hidden"))) const char name[]
// clang-format on
// NOLINTEND(bugprone-macro-parentheses)

#if defined(DIOMP_REDUCTION_PTX)
DIOMP_EMBED(diomp_reduction_ptx, 1, DIOMP_REDUCTION_PTX);
DIOMP_EMBED(diomp_update_ptx, 1, DIOMP_UPDATE_PTX);
#endif
#if defined(DIOMP_REDUCTION_AMDGPU)
DIOMP_EMBED(diomp_reduction_amdgpu, 4096, DIOMP_REDUCTION_AMDGPU);
DIOMP_EMBED(diomp_update_amdgpu, 4096, DIOMP_UPDATE_AMDGPU);
#endif

namespace diomp::device::kernels {

const char *reduction_ptx() {
#if defined(DIOMP_REDUCTION_PTX)
    return diomp_reduction_ptx;
#else
    return nullptr;
#endif
}

const char *update_ptx() {
#if defined(DIOMP_REDUCTION_PTX)
    return diomp_update_ptx;
#else
    return nullptr;
#endif
}

const void *reduction_amdgpu() {
#if defined(DIOMP_REDUCTION_AMDGPU)
    return diomp_reduction_amdgpu;
#else
    return nullptr;
#endif
}

const void *update_amdgpu() {
#if defined(DIOMP_REDUCTION_AMDGPU)
    return diomp_update_amdgpu;
#else
    return nullptr;
#endif
}

} // namespace diomp::device::kernels
