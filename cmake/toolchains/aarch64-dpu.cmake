# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# For 64-bit Arm, DPUs and hosts alike: clang 19 with the folder of scripts/dpu-sysroot.sh and GNU's linker for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

# CMake reads this file anew in each of its trial builds, with the same environment.
execute_process(COMMAND "${CMAKE_CURRENT_LIST_DIR}/../../scripts/dpu-sysroot.sh" --folder
  OUTPUT_VARIABLE CMAKE_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS "${CMAKE_SYSROOT}/usr/lib/llvm-19/lib/libomp.so")
  message(FATAL_ERROR "No libraries for aarch64 in ${CMAKE_SYSROOT}: run scripts/dpu-sysroot.sh, or set DIOMP_DPU_SYSROOT")
endif()
find_program(DIOMP_DPU_LINKER aarch64-linux-gnu-ld)
find_program(CMAKE_AR aarch64-linux-gnu-ar)
find_program(CMAKE_RANLIB aarch64-linux-gnu-ranlib)
find_program(DIOMP_DPU_EMULATOR qemu-aarch64-static)
if(NOT DIOMP_DPU_LINKER OR NOT CMAKE_AR OR NOT CMAKE_RANLIB)
  message(FATAL_ERROR "No aarch64-linux-gnu-ld: install binutils-aarch64-linux-gnu")
endif()

set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(linker_flags "--ld-path=${DIOMP_DPU_LINKER} -L${CMAKE_SYSROOT}/usr/lib/llvm-19/lib")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${linker_flags}")
endforeach()

# Programs of this machine, everything else of the folder.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
  "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "")
if(DIOMP_DPU_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${DIOMP_DPU_EMULATOR};-L;${CMAKE_SYSROOT}")
endif()
