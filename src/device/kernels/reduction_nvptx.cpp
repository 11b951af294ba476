// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reduction kernels for NVIDIA's GPUs, compiled to PTX by cmake/DiompKernels.cmake.
#include "device/kernels/reduction_loops.h"

namespace diomp::device::kernels {
namespace {

/// The threads of the launch, in one dimension.
struct threads {
    static DIOMP_INLINE u64 first() {
        return u64{static_cast<u32>(__nvvm_read_ptx_sreg_ctaid_x())} * width() +
               static_cast<u32>(__nvvm_read_ptx_sreg_tid_x());
    }
    static DIOMP_INLINE u64 step() {
        return u64{static_cast<u32>(__nvvm_read_ptx_sreg_nctaid_x())} * width();
    }
    static DIOMP_INLINE u32 width() { return static_cast<u32>(__nvvm_read_ptx_sreg_ntid_x()); }
};

} // namespace

#define DIOMP_KERNEL(op, element)                                                                  \
    extern "C" __attribute__((nvptx_kernel)) void diomp_reduce_##op##_##element(                   \
        reduction_arguments all) {                                                                 \
        reduce<threads, op, element>(all);                                                         \
    }
DIOMP_REDUCTIONS(DIOMP_KERNEL)

} // namespace diomp::device::kernels
