# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles the runtime's own kernels for NVIDIA's GPUs to PTX, which the driver compiles for the device it finds. Needs a
# clang that knows the target, and no CUDA; without it the runtime has no kernels and reduces on the processor.
set(DIOMP_GPU_KERNELS AUTO CACHE STRING "Kernels for NVIDIA GPUs in the runtime: AUTO (where a clang can compile them), ON or OFF")
set_property(CACHE DIOMP_GPU_KERNELS PROPERTY STRINGS AUTO ON OFF)
set(DIOMP_HAVE_GPU_KERNELS OFF)
if(DIOMP_GPU_KERNELS STREQUAL "OFF")
  return()
endif()

find_program(DIOMP_KERNEL_COMPILER NAMES clang++-19 clang++ DOC "A clang with the target nvptx64")
if(DIOMP_KERNEL_COMPILER)
  execute_process(COMMAND "${DIOMP_KERNEL_COMPILER}" --print-targets
    OUTPUT_VARIABLE targets ERROR_QUIET)
  if(targets MATCHES "nvptx64")
    set(DIOMP_HAVE_GPU_KERNELS ON)
  endif()
endif()
if(NOT DIOMP_HAVE_GPU_KERNELS)
  if(DIOMP_GPU_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "DIOMP_GPU_KERNELS=ON: no clang++ with the target nvptx64 was found (DIOMP_KERNEL_COMPILER)")
  endif()
  message(STATUS "Kernels for NVIDIA GPUs: none, no clang++ with the target nvptx64")
  return()
endif()

# sm_70 is the oldest that a device may be. Without contraction, so that results have the processor's bits.
set(DIOMP_REDUCTION_PTX "${PROJECT_BINARY_DIR}/kernels/reduction.ptx")
set(kernel_sources "${PROJECT_SOURCE_DIR}/src/device/kernels/reduction_nvptx.cpp"
  "${PROJECT_SOURCE_DIR}/src/device/kernels/reduction_loops.h" "${PROJECT_SOURCE_DIR}/src/device/kernels/reduction.h"
  "${PROJECT_SOURCE_DIR}/src/base/small_floats.h")
add_custom_command(OUTPUT "${DIOMP_REDUCTION_PTX}"
  COMMAND ${CMAKE_COMMAND} -E make_directory "${PROJECT_BINARY_DIR}/kernels"
  COMMAND "${DIOMP_KERNEL_COMPILER}" --target=nvptx64-nvidia-cuda -march=sm_70 -std=c++20 -O2 -fno-unroll-loops
    -ffreestanding -nostdinc -fno-exceptions -fno-rtti -ffp-contract=off -Wall -Wextra "-I${PROJECT_SOURCE_DIR}/src"
    -S -o "${DIOMP_REDUCTION_PTX}" "${PROJECT_SOURCE_DIR}/src/device/kernels/reduction_nvptx.cpp"
  DEPENDS ${kernel_sources} COMMENT "Compiling kernels for NVIDIA GPUs" VERBATIM)
add_custom_target(diomp_kernels DEPENDS "${DIOMP_REDUCTION_PTX}")
