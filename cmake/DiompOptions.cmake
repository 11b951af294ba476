# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Options, and the two interface targets that carry flags for our own code.
option(DIOMP_BUILD_APPS "Build Minimod, the matrix product and their MPI twins" ON)
option(DIOMP_BUILD_BENCH "Build diomp-bench and the comparisons with other libraries" ON)
option(DIOMP_BUILD_OFFLOAD "Build libomptarget, for device memory in the address space" ON)
option(DIOMP_BUILD_TESTS "Build the tests" ON)
option(DIOMP_SIM "Build diomp-sim, where SimGrid is installed" ON)
set(DIOMP_BATCH 0 CACHE STRING "Compile so many sources of a library or a program as one: a first build takes half the time")
option(DIOMP_WERROR "Treat warnings as errors" OFF)
option(DIOMP_COVERAGE "Count lines and branches (clang; see scripts/coverage.sh)" OFF)
option(DIOMP_ASSERTS "Check invariants (src/base/assert.h)" OFF)
set(DIOMP_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, such as address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Every target of ours links this privately.
add_library(diomp_flags INTERFACE)
target_compile_features(diomp_flags INTERFACE cxx_std_20)
target_compile_options(diomp_flags INTERFACE
  -Wall -Wextra -Wconversion
  # gcc's -Wshadow alone also means names of types and of other scopes, which clang leaves alone.
  $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>
  # gcc 12 takes the value of a std::optional that was tested for one that may be unset, and std::string's appending
  # for copies that overlap.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-maybe-uninitialized;-Wno-restrict>"
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  -fno-omit-frame-pointer)
if(DIOMP_WERROR)
  target_compile_options(diomp_flags INTERFACE -Werror)
endif()
if(DIOMP_SANITIZE)
  target_compile_options(diomp_flags INTERFACE -fsanitize=${DIOMP_SANITIZE} -fno-sanitize-recover=all)
  # A program in C brings the sanitizer's runtime for the library's C++ too.
  target_link_options(diomp_flags INTERFACE -fsanitize=${DIOMP_SANITIZE}
    $<$<LINK_LANG_AND_ID:C,Clang>:-fsanitize-link-c++-runtime$<SEMICOLON>-lstdc++>)
endif()
if(DIOMP_ASSERTS)
  target_compile_definitions(diomp_flags INTERFACE DIOMP_ASSERTS)
endif()
if(DIOMP_COVERAGE)
  target_compile_options(diomp_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(diomp_flags INTERFACE -fprofile-instr-generate)
endif()

# diomp_parses_options(<source>...): sources that only read command lines. CLI11 is a large header of templates; left
# unoptimised it compiles in a quarter of the time.
function(diomp_parses_options)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O0)
endfunction()

# diomp_batch(<target>...): what DIOMP_BATCH is for. Not for development, where a file that lacks an include would go unnoticed.
function(diomp_batch)
  if(DIOMP_BATCH)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${DIOMP_BATCH})
  endif()
endfunction()
