// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel of update.h for NVIDIA's GPUs, compiled to PTX by cmake/DiompKernels.cmake.
#include "device/kernels/update.h"

extern "C" __attribute__((nvptx_kernel)) void
diomp_update(diomp::device::kernels::update_arguments all) {
    diomp::device::kernels::update(all);
}
