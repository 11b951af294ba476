# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# For DIOMP_STATIC_LLVM: the installed LLVM (DIOMP_LLVM_CMAKE_DIR), but its libraries linked statically, and none that compile
# for GPUs. Only images in bitcode would need those; DiOMP's images are machine code.
include("${DIOMP_LLVM_CMAKE_DIR}/LLVMConfig.cmake")
set(LLVM_LINK_LLVM_DYLIB OFF)
set(LLVM_TARGETS_TO_BUILD "")
# Debian packages Polly separately, and libomptarget does not need it.
set_target_properties(LLVMExtensions PROPERTIES INTERFACE_LINK_LIBRARIES LLVMSupport)
