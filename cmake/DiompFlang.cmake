# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# flang of each version of LLVM that the build is for, besides gfortran: CMake knows one Fortran compiler per build, so that
# flang compiles the module by commands of fortran/CMakeLists.txt (docs/fortran.md).
set(DIOMP_FLANG AUTO CACHE STRING
  "Build the Fortran module for flang of DIOMP_LLVM_VERSIONS, too: AUTO (versions that are installed), ON (all), OFF, or a list of them")
set_property(CACHE DIOMP_FLANG PROPERTY STRINGS AUTO ON OFF)
set(DIOMP_FLANG_VERSIONS "")
if(DIOMP_FLANG STREQUAL "OFF" OR DIOMP_FORTRAN STREQUAL "OFF" OR DIOMP_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(wanted ${DIOMP_LLVM_VERSIONS})
if(NOT DIOMP_FLANG MATCHES "^(AUTO|ON)$")
  set(wanted ${DIOMP_FLANG})
endif()
foreach(version IN LISTS wanted)
  if(NOT DIOMP_FLANG_${version}) # it may have been installed since the last time
    unset(DIOMP_FLANG_${version} CACHE)
  endif()
  # Versions before 20 have the first name.
  find_program(DIOMP_FLANG_${version} NAMES flang-new-${version} flang-${version} flang-new flang
    HINTS "${DIOMP_LLVM_${version}_PREFIX}/bin" DOC "flang ${version}")
  mark_as_advanced(DIOMP_FLANG_${version})
  set(found "")
  if(DIOMP_FLANG_${version})
    execute_process(COMMAND "${DIOMP_FLANG_${version}}" --version OUTPUT_VARIABLE found ERROR_QUIET)
    file(REAL_PATH "${DIOMP_FLANG_${version}}" flang)
    cmake_path(GET flang PARENT_PATH flang)
    set(DIOMP_FLANG_${version}_HEADERS "${flang}/../include/flang")
  endif()
  if(found MATCHES "flang(-new)? version ${version}[.]" AND EXISTS "${DIOMP_FLANG_${version}_HEADERS}/ISO_Fortran_binding.h")
    list(APPEND DIOMP_FLANG_VERSIONS ${version})
  elseif(NOT DIOMP_FLANG STREQUAL "AUTO")
    message(FATAL_ERROR "DIOMP_FLANG=${DIOMP_FLANG}, but there is no flang ${version} with ISO_Fortran_binding.h: install flang-${version}")
  endif()
endforeach()
