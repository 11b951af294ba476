# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Read by CMake at the start of LLVM's offload build (CMAKE_PROJECT_INCLUDE).

# libcuda.so is a link that only development packages have; libcuda.so.1 is the driver's own name.
add_compile_definitions(DYNAMIC_CUDA_PATH="libcuda.so.1")
if(DIOMP_STATIC_LLVM)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(LINKER:--gc-sections LINKER:--as-needed LINKER:-z,defs)
endif()

# LLVM's headers take most of the compile time of each file. (Not unity builds: --wrap redirects calls from other files only.)
function(diomp_precompile_headers)
  target_precompile_headers(omptarget PRIVATE <PluginManager.h>)
  # Declares a function of these headers otherwise.
  set_source_files_properties("${CMAKE_SOURCE_DIR}/libomptarget/KernelLanguage/API.cpp" TARGET_DIRECTORY omptarget
    PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  # Without this, plugins do not know OpenMP's numbers of their devices where the build has no OMPT.
  if(NOT LIBOMPTARGET_OMPT_SUPPORT)
    set_source_files_properties("${CMAKE_SOURCE_DIR}/libomptarget/PluginManager.cpp" TARGET_DIRECTORY omptarget
      PROPERTIES SKIP_PRECOMPILE_HEADERS ON
      COMPILE_OPTIONS "-include;${DIOMP_SOURCE_DIR}/llvm/versions/DeviceNumbers.h")
  endif()
  foreach(plugin common host cuda amdgpu diomp)
    set(target omptarget.rtl.${plugin})
    if(plugin STREQUAL "common")
      set(target PluginCommon)
    endif()
    target_precompile_headers(${target} PRIVATE <PluginInterface.h>)
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL diomp_precompile_headers)

# The plugin's own functions (Copies.cpp) have these names.
function(diomp_rename_copies)
  file(GLOB source "${CMAKE_SOURCE_DIR}/libomptarget/OpenMP/API.cpp" "${CMAKE_SOURCE_DIR}/src/OpenMP/API.cpp")
  set_property(SOURCE "${source}" TARGET_DIRECTORY omptarget APPEND PROPERTY COMPILE_DEFINITIONS
    omp_target_memcpy=diompLLVMMemcpy omp_target_memcpy_rect=diompLLVMMemcpyRect)
  # Precompiled headers declare the functions by their own names.
  set_property(SOURCE "${source}" TARGET_DIRECTORY omptarget PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL diomp_rename_copies)

# What is built is installed as it is: nothing of the build's folders may be in its run path, and no empty element, which
# stands for the working directory.
function(diomp_set_run_path)
  set_target_properties(omptarget PROPERTIES BUILD_WITH_INSTALL_RPATH ON BUILD_RPATH "" INSTALL_RPATH "${DIOMP_RUN_PATH}"
    INSTALL_RPATH_USE_LINK_PATH OFF)
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL diomp_set_run_path)
