// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reduction kernels for AMD's GPUs, compiled as HIP by cmake/DiompKernels.cmake.
#pragma clang force_cuda_host_device begin
#include "device/kernels/reduction_loops.h"

namespace diomp::device::kernels {
namespace {

/// The threads of the launch, in one dimension, with full blocks.
struct threads {
    static DIOMP_INLINE u64 first() {
        return u64{__builtin_amdgcn_workgroup_id_x()} * reduction_arguments::block_threads +
               __builtin_amdgcn_workitem_id_x();
    }
    static DIOMP_INLINE u64 step() { return __builtin_amdgcn_grid_size_x(); }
};

} // namespace

#define DIOMP_KERNEL(op, element)                                                                  \
    extern "C" __attribute__((                                                                     \
        global, amdgpu_flat_work_group_size(reduction_arguments::block_threads,                    \
                                            reduction_arguments::block_threads))) void             \
        diomp_reduce_##op##_##element(reduction_arguments all) {                                   \
        reduce<threads, op, element>(all);                                                         \
    }
DIOMP_REDUCTIONS(DIOMP_KERNEL)

} // namespace diomp::device::kernels
#pragma clang force_cuda_host_device end
