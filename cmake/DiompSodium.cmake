# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# libsodium: the cryptography of src/base/secure. diomp_sodium carries it.
# The archive is preferred: it becomes part of libdiomp.so and the tools, hidden, so that hosts which run programs need no
# libsodium and a program may bring another one. Where there is none, or it cannot become part of a shared library, the
# shared library is taken.
find_path(SODIUM_INCLUDE_DIR sodium.h)
find_library(SODIUM_ARCHIVE libsodium.a)
find_library(SODIUM_LIBRARY sodium)
mark_as_advanced(SODIUM_INCLUDE_DIR SODIUM_ARCHIVE SODIUM_LIBRARY)
if(NOT SODIUM_INCLUDE_DIR OR NOT (SODIUM_ARCHIVE OR SODIUM_LIBRARY))
  message(FATAL_ERROR "No libsodium: install libsodium-dev (Fedora: libsodium-devel), or set SODIUM_INCLUDE_DIR and SODIUM_LIBRARY")
endif()

function(diomp_check_sodium_archive variable)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared -Wl,--exclude-libs,ALL)
  set(CMAKE_REQUIRED_INCLUDES "${SODIUM_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${SODIUM_ARCHIVE}" pthread)
  check_cxx_source_compiles("#include <sodium.h>
int start(unsigned char *key) { randombytes_buf(key, 32); return sodium_init() + crypto_aead_aes256gcm_is_available(); }" ${variable})
endfunction()
if(SODIUM_ARCHIVE)
  diomp_check_sodium_archive(DIOMP_SODIUM_ARCHIVE_WORKS)
endif()

find_package(Threads REQUIRED)
add_library(diomp_sodium INTERFACE)
target_include_directories(diomp_sodium SYSTEM INTERFACE "${SODIUM_INCLUDE_DIR}")
if(DIOMP_SODIUM_ARCHIVE_WORKS)
  message(STATUS "libsodium: ${SODIUM_ARCHIVE}")
  # None of its symbols may be seen in programs.
  target_link_options(diomp_sodium INTERFACE LINKER:--exclude-libs,libsodium.a)
  target_link_libraries(diomp_sodium INTERFACE "${SODIUM_ARCHIVE}" Threads::Threads)
elseif(SODIUM_LIBRARY)
  message(STATUS "libsodium: ${SODIUM_LIBRARY} (shared)")
  target_link_libraries(diomp_sodium INTERFACE "${SODIUM_LIBRARY}")
else()
  message(FATAL_ERROR "${SODIUM_ARCHIVE} cannot become part of a shared library, and there is no libsodium.so")
endif()
