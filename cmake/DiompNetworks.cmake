# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Networks that a build takes in only where it is told to: GASNet-EX and GPI-2, installed copies of them.
# diomp_networks carries what has been found; DIOMP_NETWORKS lists their names ("gasnet", "gaspi").
set(DIOMP_GASNET_CONDUIT "" CACHE STRING "GASNet-EX conduit to build against: smp, udp, ucx, ibv, ofi, mpi; empty: none")
set_property(CACHE DIOMP_GASNET_CONDUIT PROPERTY STRINGS "" smp udp ucx ibv ofi mpi)
option(DIOMP_GPI2 "Build the conduit over GPI-2" OFF)

set(DIOMP_NETWORKS "")
add_library(diomp_networks INTERFACE)

# What pkg-config says of optimisation and warnings is for programs of GASNet's own kind; its definitions count here too.
function(diomp_take_in_network name prefix)
  set(definitions "${${prefix}_CFLAGS_OTHER}")
  list(FILTER definitions INCLUDE REGEX "^-D")
  target_include_directories(diomp_networks SYSTEM INTERFACE ${${prefix}_INCLUDE_DIRS})
  target_link_directories(diomp_networks INTERFACE ${${prefix}_LIBRARY_DIRS})
  # Archives: none of their symbols may be seen in programs.
  target_link_options(diomp_networks INTERFACE LINKER:--exclude-libs,ALL)
  target_link_libraries(diomp_networks INTERFACE ${${prefix}_LIBRARIES})
  target_compile_options(diomp_networks INTERFACE ${definitions})
  set(DIOMP_NETWORKS ${DIOMP_NETWORKS} ${name} PARENT_SCOPE)
endfunction()

if(DIOMP_GASNET_CONDUIT)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(GASNET REQUIRED "gasnet-${DIOMP_GASNET_CONDUIT}-par>=2023.9")
  diomp_take_in_network(gasnet GASNET)
  message(STATUS "GASNet-EX ${GASNET_VERSION}: conduit gasnet (${DIOMP_GASNET_CONDUIT})")
endif()
# Whether the archive can become part of a shared library; one that was built without -fPIC cannot.
function(diomp_check_archive variable archive include_dirs)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared)
  set(CMAKE_REQUIRED_INCLUDES ${include_dirs})
  set(CMAKE_REQUIRED_LIBRARIES "${archive}" ${ARGN})
  check_cxx_source_compiles("#include <GASPI.h>\nint start() { return gaspi_proc_init(0); }" ${variable})
endfunction()

if(DIOMP_GPI2)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(GPI2 REQUIRED "GPI2>=1.6")
  # The archive keeps GPI-2's names to ourselves, and needs what GPI-2 itself needs.
  find_library(DIOMP_GPI2_ARCHIVE libGPI2.a PATHS ${GPI2_STATIC_LIBRARY_DIRS} NO_DEFAULT_PATH)
  mark_as_advanced(DIOMP_GPI2_ARCHIVE)
  if(DIOMP_GPI2_ARCHIVE)
    set(private_libraries ${GPI2_STATIC_LIBRARIES})
    list(REMOVE_ITEM private_libraries GPI2)
    diomp_check_archive(DIOMP_GPI2_ARCHIVE_IS_PIC "${DIOMP_GPI2_ARCHIVE}" "${GPI2_INCLUDE_DIRS}" ${private_libraries})
    if(DIOMP_GPI2_ARCHIVE_IS_PIC)
      set(GPI2_LIBRARIES ${DIOMP_GPI2_ARCHIVE} ${private_libraries} Threads::Threads)
    endif()
  endif()
  find_package(Threads REQUIRED)
  diomp_take_in_network(gaspi GPI2)
  message(STATUS "GPI-2 ${GPI2_VERSION}: conduit gaspi (${GPI2_LIBRARIES})")
endif()
