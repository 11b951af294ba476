# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# diomp_devices: an interface target for programs with target regions. Here only the options; llvm/ has libomptarget.
set(DIOMP_GPU_ARCHS "" CACHE STRING
  "GPUs that tests, apps and benchmarks with target regions are compiled for: sm_80;sm_90;gfx90a and the like")
option(DIOMP_HOST_DEVICES "Compile them for LLVM's host devices too" ON)

add_library(diomp_devices INTERFACE)
if(DIOMP_HAVE_OFFLOAD AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
  set(device_archs ${DIOMP_GPU_ARCHS})
  if(DIOMP_HOST_DEVICES)
    list(APPEND device_archs host)
  endif()
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/gpu-toolchain.sh" --flags --llvm ${DIOMP_LLVM_VERSION} ${device_archs}
    OUTPUT_VARIABLE device_flags ERROR_VARIABLE device_error RESULT_VARIABLE device_failed
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(device_failed)
    message(FATAL_ERROR "DIOMP_GPU_ARCHS='${DIOMP_GPU_ARCHS}': ${device_error}")
  endif()
  string(REPLACE "\n" ";" device_flags "${device_flags}")
  # An option and its value must stay together where CMake drops options that it has seen.
  list(TRANSFORM device_flags PREPEND "SHELL:")
  if(DIOMP_GPU_ARCHS)
    list(APPEND device_flags -Wno-pass-failed) # GPUs have no vectors for loops that are `simd`
  endif()
  target_compile_options(diomp_devices INTERFACE ${device_flags})
  target_link_options(diomp_devices INTERFACE ${device_flags} "LINKER:-rpath,${PROJECT_BINARY_DIR}/lib/diomp")
  target_link_libraries(diomp_devices INTERFACE diomp_omptarget)
endif()
