# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Read by CMake at the start of LLVM's offload build (CMAKE_PROJECT_INCLUDE).

# libcuda.so is a link that only packages for developers have, libcuda.so.1 is the driver's own name.
add_compile_definitions(DYNAMIC_CUDA_PATH="libcuda.so.1")
if(DIOMP_STATIC_LLVM)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(LINKER:--gc-sections LINKER:--as-needed LINKER:-z,defs)
endif()
