# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# diomp_llvm_source(VERSION VARIABLE): the folder that scripts/fetch-llvm.sh has made, unless DIOMP_LLVM_VERSION_SOURCE (as in
# DIOMP_LLVM_22_SOURCE) names another; empty if there is none.
function(diomp_llvm_source version variable)
  set(DIOMP_LLVM_SOURCE "" CACHE PATH "Directory of scripts/fetch-llvm.sh for the first version; empty: its default")
  set(source "${DIOMP_LLVM_${version}_SOURCE}")
  if(NOT source AND version STREQUAL DIOMP_LLVM_VERSION)
    set(source "${DIOMP_LLVM_SOURCE}")
  endif()
  if(NOT source)
    execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/fetch-llvm.sh" --llvm ${version} --folder
      OUTPUT_VARIABLE source OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT EXISTS "${source}/version")
    set(source "")
  endif()
  set(${variable} "${source}" PARENT_SCOPE)
endfunction()

# diomp_llvm_overlay(SOURCE OVERLAY): LLVM's build finds plugins by their directory. The source itself is unchanged: the
# build uses a tree of links to it.
function(diomp_llvm_overlay source overlay)
  file(MAKE_DIRECTORY "${overlay}/offload/plugins-nextgen")
  foreach(pattern "*" "offload/*" "offload/plugins-nextgen/*")
    file(GLOB entries RELATIVE "${source}" "${source}/${pattern}")
    foreach(entry IN LISTS entries)
      if(NOT IS_DIRECTORY "${overlay}/${entry}" OR IS_SYMLINK "${overlay}/${entry}")
        file(CREATE_LINK "${source}/${entry}" "${overlay}/${entry}" SYMBOLIC)
      endif()
    endforeach()
  endforeach()
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}/plugin/diomp" "${overlay}/offload/plugins-nextgen/diomp" SYMBOLIC)
endfunction()

# diomp_llvm_run_path(VERSION PREFIX VARIABLE): $ORIGIN, and LLVM's folder where the loader does not look by itself (a version
# of scripts/llvm-toolchain.sh). Separated by |, as LIST_SEPARATOR says.
function(diomp_llvm_run_path version prefix variable)
  set(run_path "$ORIGIN")
  execute_process(COMMAND /sbin/ldconfig -p OUTPUT_VARIABLE known ERROR_QUIET)
  if(NOT DIOMP_STATIC_LLVM AND NOT CMAKE_SKIP_INSTALL_RPATH AND NOT known MATCHES "libLLVM[^ ]*${version}[^ ]* ")
    string(APPEND run_path "|${prefix}/lib")
  endif()
  set(${variable} "${run_path}" PARENT_SCOPE)
endfunction()

# diomp_build_libomptarget(VERSION): targets libomptarget_build_VERSION and diomp_omptarget_VERSION; for the first version
# also libomptarget_build and diomp_omptarget.
function(diomp_build_libomptarget version)
  set(prefix "${DIOMP_LLVM_${version}_PREFIX}")
  diomp_llvm_source(${version} source)
  if(NOT source OR NOT EXISTS "${prefix}/lib/cmake/llvm/LLVMConfig.cmake" OR NOT EXISTS "${prefix}/bin/clang++")
    message(STATUS "libomptarget of LLVM ${version} is not built: needs clang-${version}, llvm-${version}-dev and "
      "scripts/fetch-llvm.sh --llvm ${version}. Device memory will not be part of the address space.")
    return()
  endif()
  include("${CMAKE_CURRENT_SOURCE_DIR}/versions/${version}/version.cmake")
  set(build "${CMAKE_CURRENT_BINARY_DIR}/llvm-${version}")
  diomp_llvm_overlay("${source}" "${build}/source")
  diomp_llvm_run_path(${version} "${prefix}" run_path)
  set(llvm_dir "${prefix}/lib/cmake/llvm")
  if(DIOMP_STATIC_LLVM)
    set(llvm_dir "${CMAKE_CURRENT_SOURCE_DIR}/static")
  endif()

  # A separate directory: /usr/local/lib is searched for every program of a system, and only DiOMP programs should find this.
  set(directory "${PROJECT_BINARY_DIR}/lib/diomp")
  file(MAKE_DIRECTORY "${directory}/llvm-${version}")
  set(placed "${directory}/${DIOMP_LLVM_SONAME}")
  file(CREATE_LINK "../${DIOMP_LLVM_SONAME}" "${directory}/llvm-${version}/libomptarget.so" SYMBOLIC)
  install(FILES "${placed}" DESTINATION ${CMAKE_INSTALL_LIBDIR}/diomp)
  install(FILES "${directory}/llvm-${version}/libomptarget.so" DESTINATION ${CMAKE_INSTALL_LIBDIR}/diomp/llvm-${version})
  set(launchers)
  foreach(language C CXX)
    if(CMAKE_${language}_COMPILER_LAUNCHER)
      list(APPEND launchers "-DCMAKE_${language}_COMPILER_LAUNCHER=${CMAKE_${language}_COMPILER_LAUNCHER}")
    endif()
  endforeach()
  ExternalProject_Add(libomptarget_build_${version}
    SOURCE_DIR "${build}/source/${DIOMP_LLVM_BUILD_FOLDER}"
    BINARY_DIR "${build}/build"
    PREFIX "${build}/steps"
    CMAKE_GENERATOR Ninja
    LIST_SEPARATOR "|"
    CMAKE_ARGS ${launchers}
      -DCMAKE_C_COMPILER=${prefix}/bin/clang -DCMAKE_CXX_COMPILER=${prefix}/bin/clang++ -DCMAKE_BUILD_TYPE=Release
      -DLLVM_DIR=${llvm_dir} -DDIOMP_LLVM_CMAKE_DIR=${prefix}/lib/cmake/llvm -DDIOMP_STATIC_LLVM=${DIOMP_STATIC_LLVM}
      -DLIBOMPTARGET_ENABLE_DEBUG=${DIOMP_OMPTARGET_DEBUG} "-DCMAKE_SKIP_RPATH=${CMAKE_SKIP_INSTALL_RPATH}"
      "-DDIOMP_RUN_PATH=${run_path}"
      -DCMAKE_PROJECT_INCLUDE=${CMAKE_CURRENT_SOURCE_DIR}/overlay.cmake ${DIOMP_LLVM_ARGUMENTS}
      "-DLIBOMPTARGET_PLUGINS_TO_BUILD=${DIOMP_LLVM_PLUGINS}|diomp"
      -DDIOMP_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DDIOMP_LLVM_VERSION=${version}
    BUILD_COMMAND "${CMAKE_COMMAND}" --build . --target omptarget
    INSTALL_COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${build}/build/${DIOMP_LLVM_BUILT}" "${placed}"
    BUILD_ALWAYS ON
    BUILD_BYPRODUCTS "${placed}"
    LOG_CONFIGURE ON LOG_BUILD ON LOG_OUTPUT_ON_FAILURE ON)
  add_library(diomp_omptarget_${version} SHARED IMPORTED GLOBAL)
  set_target_properties(diomp_omptarget_${version} PROPERTIES
    IMPORTED_LOCATION "${placed}" IMPORTED_SONAME ${DIOMP_LLVM_SONAME})
  add_dependencies(diomp_omptarget_${version} libomptarget_build_${version})
  set(DIOMP_OFFLOAD_VERSIONS ${DIOMP_OFFLOAD_VERSIONS} ${version} CACHE INTERNAL "")
  if(version STREQUAL DIOMP_LLVM_VERSION)
    file(CREATE_LINK ${DIOMP_LLVM_SONAME} "${directory}/libomptarget.so" SYMBOLIC)
    install(FILES "${directory}/libomptarget.so" DESTINATION ${CMAKE_INSTALL_LIBDIR}/diomp)
    add_custom_target(libomptarget_build)
    add_dependencies(libomptarget_build libomptarget_build_${version})
    add_library(diomp_omptarget ALIAS diomp_omptarget_${version})
    set(DIOMP_HAVE_OFFLOAD ON CACHE INTERNAL "")
  endif()
endfunction()
