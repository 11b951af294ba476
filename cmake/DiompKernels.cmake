# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles the runtime's own kernels: for NVIDIA's GPUs to PTX, which the driver compiles for the device it finds, for AMD's
# to one code object per architecture, bundled as HIP's runtime expects it. Needs a clang that knows the targets and, for
# AMD's, lld and clang-offload-bundler; no CUDA and no ROCm. Without kernels the runtime reduces on the processor.
set(DIOMP_GPU_KERNELS AUTO CACHE STRING "Kernels for GPUs in the runtime: AUTO (what a clang here can compile), ON (for NVIDIA and AMD) or OFF")
set_property(CACHE DIOMP_GPU_KERNELS PROPERTY STRINGS AUTO ON OFF)
set(DIOMP_AMD_KERNEL_ARCHS "gfx906;gfx908;gfx90a;gfx942" CACHE STRING "Architectures of the kernels for AMD's GPUs")
set(DIOMP_HAVE_PTX_KERNELS OFF)
set(DIOMP_HAVE_AMD_KERNELS OFF)
# What the runtime embeds, and the macros that say where it is.
set(DIOMP_KERNEL_FILES "")
set(DIOMP_KERNEL_MACROS "")
if(DIOMP_GPU_KERNELS STREQUAL "OFF")
  return()
endif()

# diomp_kernels_missing(VENDOR WHAT): that there will be none for the vendor, and why.
function(diomp_kernels_missing vendor what)
  if(DIOMP_GPU_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "DIOMP_GPU_KERNELS=ON: no ${what} was found (DIOMP_KERNEL_COMPILER)")
  endif()
  message(STATUS "Kernels for ${vendor} GPUs: none, no ${what}")
endfunction()

find_program(DIOMP_KERNEL_COMPILER NAMES clang++-19 clang++-${DIOMP_LLVM_VERSION} clang++ DOC "A clang with the targets nvptx64 and amdgcn")
set(targets "")
if(DIOMP_KERNEL_COMPILER)
  execute_process(COMMAND "${DIOMP_KERNEL_COMPILER}" --print-targets OUTPUT_VARIABLE targets ERROR_QUIET)
endif()
set(kernel_folder "${PROJECT_SOURCE_DIR}/src/device/kernels")
set(kernel_headers "${kernel_folder}/reduction_loops.h" "${kernel_folder}/reduction.h"
  "${PROJECT_SOURCE_DIR}/src/base/minimum_maximum.h" "${PROJECT_SOURCE_DIR}/src/base/small_floats.h")
# Without contraction, so that results have the processor's bits.
set(kernel_flags -std=c++20 -O2 -fno-unroll-loops -ffreestanding -nostdinc -fno-exceptions -fno-rtti -ffp-contract=off -Wall -Wextra
  "-I${PROJECT_SOURCE_DIR}/src")
# The kernel that updates words needs clang's stdint.h, and nothing of the C library.
set(update_headers "${kernel_folder}/update.h" "${PROJECT_SOURCE_DIR}/include/diomp/device_words.h"
  "${PROJECT_SOURCE_DIR}/include/diomp/device_memory.h" "${PROJECT_SOURCE_DIR}/include/diomp/device_endpoint.h")
set(update_flags ${kernel_flags} "-I${PROJECT_SOURCE_DIR}/include")
list(TRANSFORM update_flags REPLACE "^-nostdinc$" "-nostdlibinc")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/kernels")

if(targets MATCHES "nvptx64")
  set(DIOMP_HAVE_PTX_KERNELS ON)
  set(DIOMP_REDUCTION_PTX "${PROJECT_BINARY_DIR}/kernels/reduction.ptx")
  # sm_70 is the oldest that a device may be. clang 22 does not choose the PTX version that it needs.
  set(kernel_target --target=nvptx64-nvidia-cuda -march=sm_70 -Xclang -target-feature -Xclang +ptx60)
  add_custom_command(OUTPUT "${DIOMP_REDUCTION_PTX}"
    COMMAND "${DIOMP_KERNEL_COMPILER}" ${kernel_target} ${kernel_flags}
      -S -o "${DIOMP_REDUCTION_PTX}" "${kernel_folder}/reduction_nvptx.cpp"
    DEPENDS "${kernel_folder}/reduction_nvptx.cpp" ${kernel_headers} COMMENT "Compiling kernels for NVIDIA GPUs" VERBATIM)
  set(DIOMP_UPDATE_PTX "${PROJECT_BINARY_DIR}/kernels/update.ptx")
  add_custom_command(OUTPUT "${DIOMP_UPDATE_PTX}"
    COMMAND "${DIOMP_KERNEL_COMPILER}" ${kernel_target} ${update_flags}
      -S -o "${DIOMP_UPDATE_PTX}" "${kernel_folder}/update_nvptx.cpp"
    DEPENDS "${kernel_folder}/update_nvptx.cpp" ${update_headers} COMMENT "Compiling atomics for NVIDIA GPUs" VERBATIM)
  list(APPEND DIOMP_KERNEL_FILES "${DIOMP_REDUCTION_PTX}" "${DIOMP_UPDATE_PTX}")
  list(APPEND DIOMP_KERNEL_MACROS "DIOMP_REDUCTION_PTX=\"${DIOMP_REDUCTION_PTX}\"" "DIOMP_UPDATE_PTX=\"${DIOMP_UPDATE_PTX}\"")
else()
  diomp_kernels_missing(NVIDIA "clang++ with the target nvptx64")
endif()

# What clang calls for HIP; it looks beside itself first.
set(amd_tools_found ON)
foreach(tool lld clang-offload-bundler)
  set(found "")
  if(DIOMP_KERNEL_COMPILER)
    execute_process(COMMAND "${DIOMP_KERNEL_COMPILER}" --print-prog-name=${tool} OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT IS_ABSOLUTE "${found}")
    set(amd_tools_found OFF)
  endif()
endforeach()
if(targets MATCHES "amdgcn" AND amd_tools_found)
  set(DIOMP_HAVE_AMD_KERNELS ON)
  set(DIOMP_REDUCTION_AMDGPU "${PROJECT_BINARY_DIR}/kernels/reduction.hipfb")
  list(TRANSFORM DIOMP_AMD_KERNEL_ARCHS PREPEND "--offload-arch=" OUTPUT_VARIABLE architectures)
  add_custom_command(OUTPUT "${DIOMP_REDUCTION_AMDGPU}"
    COMMAND "${DIOMP_KERNEL_COMPILER}" -x hip --offload-device-only -nogpulib -nogpuinc ${architectures} ${kernel_flags}
      -Xoffload-linker -s -o "${DIOMP_REDUCTION_AMDGPU}" "${kernel_folder}/reduction_amdgpu.cpp"
    DEPENDS "${kernel_folder}/reduction_amdgpu.cpp" ${kernel_headers} COMMENT "Compiling kernels for AMD GPUs" VERBATIM)
  set(DIOMP_UPDATE_AMDGPU "${PROJECT_BINARY_DIR}/kernels/update.hipfb")
  add_custom_command(OUTPUT "${DIOMP_UPDATE_AMDGPU}"
    COMMAND "${DIOMP_KERNEL_COMPILER}" -x hip --offload-device-only -nogpulib -nogpuinc ${architectures} ${update_flags}
      -Xoffload-linker -s -o "${DIOMP_UPDATE_AMDGPU}" "${kernel_folder}/update_amdgpu.cpp"
    DEPENDS "${kernel_folder}/update_amdgpu.cpp" ${update_headers} COMMENT "Compiling atomics for AMD GPUs" VERBATIM)
  list(APPEND DIOMP_KERNEL_FILES "${DIOMP_REDUCTION_AMDGPU}" "${DIOMP_UPDATE_AMDGPU}")
  list(APPEND DIOMP_KERNEL_MACROS "DIOMP_REDUCTION_AMDGPU=\"${DIOMP_REDUCTION_AMDGPU}\"" "DIOMP_UPDATE_AMDGPU=\"${DIOMP_UPDATE_AMDGPU}\"")
else()
  diomp_kernels_missing(AMD "clang++ with the target amdgcn, lld and clang-offload-bundler beside it")
endif()
add_custom_target(diomp_kernels DEPENDS ${DIOMP_KERNEL_FILES})
