# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# LLVM 19, as Debian 12 and 13 have it. ../README.md says what each line means.
set(DIOMP_LLVM_SONAME libomptarget.so.19.1)
set(DIOMP_LLVM_FOLDERS "offload;openmp/runtime/src;openmp/cmake;cmake;llvm/cmake;llvm/utils/lit;runtimes;third-party/unittest")
set(DIOMP_LLVM_BUILD_FOLDER offload)
set(DIOMP_LLVM_BUILT libomptarget.so.19.1)
set(DIOMP_LLVM_ARGUMENTS -DLIBOMPTARGET_BUILD_DEVICERTL_BCLIB=OFF)
include("${CMAKE_CURRENT_LIST_DIR}/../Until21.cmake")
# The device runtime for GPUs, in LLVM's folder lib.
set(DIOMP_LLVM_RUNTIME_nvptx "libomptarget-nvptx-*.bc")
set(DIOMP_LLVM_RUNTIME_amdgpu "libomptarget-amdgpu-*.bc")
