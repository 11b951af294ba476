# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds the libdiomp that the wheel is built with: by its CMake package (CMAKE_PREFIX_PATH, DIOMP_DIR as an installed
# prefix), or in a folder that DiOMP was built in (DIOMP_DIR). Defines DiOMP::diomp and DIOMP_LIBRARY_FOLDER.
set(DIOMP_DIR "$ENV{DIOMP_DIR}" CACHE PATH "Prefix that DiOMP is installed in, or a folder that it was built in")
if(DIOMP_DIR AND EXISTS "${DIOMP_DIR}/CMakeCache.txt")
  file(STRINGS "${DIOMP_DIR}/CMakeCache.txt" source REGEX "^DiOMP_SOURCE_DIR:STATIC=")
  string(REGEX REPLACE "^[^=]*=" "" source "${source}")
  find_library(diomp_library diomp PATHS "${DIOMP_DIR}/lib" NO_DEFAULT_PATH NO_CACHE)
  if(NOT diomp_library OR NOT EXISTS "${source}/include/diomp.h")
    message(FATAL_ERROR "DIOMP_DIR=${DIOMP_DIR} is a build folder without lib/libdiomp.so: build the target diomp there")
  endif()
  add_library(DiOMP::diomp SHARED IMPORTED)
  set_target_properties(DiOMP::diomp PROPERTIES IMPORTED_LOCATION "${diomp_library}"
    INTERFACE_INCLUDE_DIRECTORIES "${source}/include")
else()
  find_package(DiOMP CONFIG PATHS "${DIOMP_DIR}" QUIET)
  if(NOT DiOMP_FOUND)
    message(FATAL_ERROR "no libdiomp found: install DiOMP (make install PREFIX=...) and set the environment variable DIOMP_DIR "
      "to that prefix, or to the folder that it was built in")
  endif()
  get_target_property(diomp_library DiOMP::diomp LOCATION)
endif()
get_filename_component(DIOMP_LIBRARY_FOLDER "${diomp_library}" DIRECTORY)
