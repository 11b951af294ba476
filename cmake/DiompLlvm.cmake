# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Versions of LLVM: which ones this build is for, and where they are.
set(DIOMP_LLVM_VERSIONS "19" CACHE STRING
  "Versions of LLVM to build libomptarget and the plugin for pragmas for; tests and diompcc take the first one")
list(GET DIOMP_LLVM_VERSIONS 0 DIOMP_LLVM_VERSION)
foreach(version IN LISTS DIOMP_LLVM_VERSIONS)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/llvm/versions/${version}/version.cmake")
    file(GLOB known RELATIVE "${PROJECT_SOURCE_DIR}/llvm/versions" "${PROJECT_SOURCE_DIR}/llvm/versions/[0-9]*")
    list(JOIN known ", " known)
    message(FATAL_ERROR "DIOMP_LLVM_VERSIONS: LLVM '${version}' is not supported (supported: ${known}; see docs/llvm.md)")
  endif()
  # Installed, or unpacked by scripts/llvm-toolchain.sh.
  if(NOT DIOMP_LLVM_${version}_PREFIX)
    execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/llvm-toolchain.sh" --llvm ${version} --folder
      OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(DIOMP_LLVM_${version}_PREFIX "${prefix}" CACHE PATH "LLVM ${version}: the folder that has its bin and lib")
  endif()
endforeach()
set(DIOMP_LLVM_PREFIX "${DIOMP_LLVM_${DIOMP_LLVM_VERSION}_PREFIX}")
include("${PROJECT_SOURCE_DIR}/llvm/versions/${DIOMP_LLVM_VERSION}/version.cmake")
file(READ "${PROJECT_SOURCE_DIR}/src/base/llvm_versions.h" known)
foreach(version IN LISTS DIOMP_LLVM_VERSIONS)
  file(STRINGS "${PROJECT_SOURCE_DIR}/llvm/versions/${version}/version.cmake" soname REGEX "DIOMP_LLVM_SONAME")
  string(REGEX MATCH "libomptarget[^)]*" soname "${soname}")
  if(NOT known MATCHES "{${version}, \"${soname}\"")
    message(FATAL_ERROR "src/base/llvm_versions.h has no line for LLVM ${version} and ${soname}")
  endif()
endforeach()
