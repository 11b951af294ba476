// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels as they come with the runtime.
#pragma once

namespace diomp::device::kernels {

/// The kernels of reduction.h for NVIDIA's GPUs, as text for the driver; null: this build has none.
const char *reduction_ptx();

/// The same for AMD's GPUs: a code object for each architecture that the build was for, in one
/// bundle, of which HIP's runtime takes its device's.
const void *reduction_amdgpu();

} // namespace diomp::device::kernels
