# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# For DIOMP_STATIC_LLVM: the installed LLVM (DIOMP_LLVM_CMAKE_DIR), but its libraries linked statically, and none that compile
# for GPUs. Only images that are bitcode would need those; ours are machine code.
include("${DIOMP_LLVM_CMAKE_DIR}/LLVMConfig.cmake")
set(LLVM_LINK_LLVM_DYLIB OFF)
set(LLVM_TARGETS_TO_BUILD "")
# Debian packs Polly apart, and libomptarget has no use for it.
set_target_properties(LLVMExtensions PROPERTIES INTERFACE_LINK_LIBRARIES LLVMSupport)
