// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel of update.h for AMD's GPUs, compiled as HIP by cmake/DiompKernels.cmake.
#pragma clang force_cuda_host_device begin
#include "device/kernels/update.h"

extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64))) void
diomp_update(diomp::device::kernels::update_arguments all) {
    diomp::device::kernels::update(all);
}
#pragma clang force_cuda_host_device end
