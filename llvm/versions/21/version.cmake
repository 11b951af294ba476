# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# LLVM 21, as Debian 13's backports have it. ../README.md says what each line means.
set(DIOMP_LLVM_SONAME libomptarget.so.21.1)
set(DIOMP_LLVM_FOLDERS "offload;openmp/runtime/src;openmp/cmake;cmake;llvm/cmake;llvm/utils/lit;runtimes;third-party/unittest;libc/shared;libc/src;libc/hdr;libc/include")
set(DIOMP_LLVM_BUILD_FOLDER offload)
set(DIOMP_LLVM_BUILT libomptarget.so.21.1)
# As for 22: libffi's archive, the linker's option for exports, and OMPT, which the packaged library does not have.
set(DIOMP_LLVM_ARGUMENTS -DOFFLOAD_INCLUDE_TESTS=OFF -DFFI_STATIC_LIBRARIES= -DLLVM_HAVE_LINK_VERSION_SCRIPT=ON
  -DLIBOMPTARGET_OMPT_SUPPORT=OFF -DLIBOMPTARGET_BUILD_DEVICERTL_BCLIB=OFF)
include("${CMAKE_CURRENT_LIST_DIR}/../Until21.cmake")
# The device runtime for GPUs, in LLVM's folder lib.
set(DIOMP_LLVM_RUNTIME_nvptx "nvptx64-nvidia-cuda/libompdevice.a")
set(DIOMP_LLVM_RUNTIME_amdgpu "amdgcn-amd-amdhsa/libompdevice.a")
