// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that are embedded in the runtime.
#pragma once

namespace diomp::device::kernels {

/// The kernels of reduction.h for NVIDIA's GPUs, as PTX; null: not part of this build.
const char *reduction_ptx();

/// The kernel of update.h for NVIDIA's GPUs, as PTX; null: not part of this build.
const char *update_ptx();

/// The kernels of reduction.h for AMD's GPUs: a bundle with one code object per architecture of the
/// build, from which HIP's runtime selects; null: not part of this build.
const void *reduction_amdgpu();

/// The kernel of update.h for AMD's GPUs, as a bundle; null: not part of this build.
const void *update_amdgpu();

} // namespace diomp::device::kernels
