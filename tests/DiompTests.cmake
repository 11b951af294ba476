# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How tests are declared. Each rank count of a multi-rank test is a ctest test of its own.
find_package(GTest REQUIRED)
include(CheckLinkerFlag)

# Tests are many and each is linked with all of the runtime, which lld does in a quarter of the time.
check_linker_flag(CXX -fuse-ld=lld DIOMP_HAS_LLD)
if(DIOMP_HAS_LLD)
  set(diomp_test_linker -fuse-ld=lld)
endif()

# GoogleTest's headers take longer to parse than most tests; with DIOMP_BATCH they are parsed once.
if(DIOMP_BATCH)
  add_library(diomp_test_headers OBJECT "${CMAKE_CURRENT_LIST_DIR}/support/headers.cpp")
  target_compile_options(diomp_test_headers PRIVATE -O0)
  target_link_libraries(diomp_test_headers PRIVATE diomp_objects diomp_flags GTest::gmock)
  target_precompile_headers(diomp_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h>)
  add_library(diomp_rank_test_headers OBJECT "${CMAKE_CURRENT_LIST_DIR}/support/headers.cpp")
  target_compile_options(diomp_rank_test_headers PRIVATE -O0)
  target_link_libraries(diomp_rank_test_headers PRIVATE DiOMP::diomp diomp_flags GTest::gmock)
  target_precompile_headers(diomp_rank_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
endif()

# diomp_thorough(<test>...): more of a kind that other tests show already, or long; `make check-all` runs these too.
function(diomp_thorough)
  foreach(test IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY LABELS thorough)
  endforeach()
endfunction()

# diomp_add_unit_test(<name> <source>... [ENV <NAME=VALUE>...] [LIBRARIES <target>...] [OPTIMISE])
#   GoogleTest in one process, linked with the runtime's objects, so it sees internal symbols. Label: unit. OPTIMISE: its
#   own code too, which costs time to compile.
function(diomp_add_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISE" "TIMEOUT" "ENV;LIBRARIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(DIOMP_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  diomp_batch(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  if(arg_OPTIMISE)
    target_compile_options(${name} PRIVATE -O2)
  else()
    target_compile_options(${name} PRIVATE -O0) # what it tests is optimised; its own code takes longer to compile than to run
    if(DIOMP_BATCH)
      target_precompile_headers(${name} REUSE_FROM diomp_test_headers)
    endif()
  endif()
  target_link_options(${name} PRIVATE ${diomp_test_linker})
  target_link_libraries(${name} PRIVATE
    diomp_objects diomp_flags ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${arg_ENV}")
endfunction()

# diomp_add_rank_test(<name> NP <n>... SOURCES <source>... [GTEST [OPTIMISE]] [ENV <NAME=VALUE>...] [ARGS <argument>...]
#                     [LIBRARIES <target>...] [TIMEOUT <seconds>])
#   A program linked with the shared library as a user's would be, run by diomp-run as test <name>.np<n>.
#   GTEST adds tests/support/rank_main.cpp, so that the sources hold TEST()s only; they are not optimised without OPTIMISE.
#   Label: ranks.
function(diomp_add_rank_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GTEST;OPTIMISE" "TIMEOUT" "NP;SOURCES;ENV;ARGS;LIBRARIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(DIOMP_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  math(EXPR ctest_timeout "${arg_TIMEOUT} + 15")
  add_executable(${name} ${arg_SOURCES})
  diomp_batch(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE DiOMP::diomp diomp_flags ${arg_LIBRARIES})
  if(arg_GTEST)
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/rank_main.cpp")
    target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest)
    if(NOT arg_OPTIMISE)
      target_compile_options(${name} PRIVATE -O0)
      if(DIOMP_BATCH AND NOT arg_LIBRARIES) # libraries bring options of their own
        target_precompile_headers(${name} REUSE_FROM diomp_rank_test_headers)
      endif()
    endif()
  endif()
  foreach(ranks IN LISTS arg_NP)
    # Unbound, since several tests may run at once and would share the first cores.
    add_test(NAME ${name}.np${ranks} COMMAND
      diomp-run -n ${ranks} --bind-to none --timeout ${arg_TIMEOUT} -- $<TARGET_FILE:${name}> ${arg_ARGS})
    set_tests_properties(${name}.np${ranks} PROPERTIES
      LABELS ranks TIMEOUT ${ctest_timeout} ENVIRONMENT "${arg_ENV}" PROCESSORS 2)
  endforeach()
endfunction()

# Ways over a network that this build has, each "<ranks> <kind> <NAME=VALUE>...": two nodes of one rank, two of two, and
# ranks of one node that are forced to use it.
set(DIOMP_NETWORK_VARIANTS "2 nodes DIOMP_NODE_SIZE=1 DIOMP_NETWORK=tcp" "4 nodes DIOMP_NODE_SIZE=2 DIOMP_NETWORK=tcp"
  "3 tcp DIOMP_CONDUIT=tcp")
if(UCX_FOUND)
  list(APPEND DIOMP_NETWORK_VARIANTS "4 nodes_ucx DIOMP_NODE_SIZE=2 DIOMP_NETWORK=ucx UCX_TLS=tcp"
    "3 ucx DIOMP_CONDUIT=ucx UCX_TLS=tcp")
endif()
if(DIOMP_GASNET_CONDUIT STREQUAL "udp") # the others do not start under diomp-run
  # GASNet's ranks of a node would share memory, too.
  list(APPEND DIOMP_NETWORK_VARIANTS "4 gasnet DIOMP_CONDUIT=gasnet GASNET_SUPERNODE_MAXSIZE=1")
endif()
if("gaspi" IN_LIST DIOMP_NETWORKS)
  list(APPEND DIOMP_NETWORK_VARIANTS "4 gaspi DIOMP_CONDUIT=gaspi")
endif()

# diomp_gasnet_devices_test(<name> <kind> <ranks> <program> [<NAME=VALUE>...] [ARGS <argument>...])
#   A test of GASNet-EX's memory kinds ("cuda", "hip") on the vendor's stand-in, whose memory GASNet's network then loads. Nothing
#   where this build's GASNet has no such kind.
find_program(DIOMP_MPIRUN NAMES mpirun.openmpi mpirun DOC "Open MPI's launcher, for the MPI twins")
function(diomp_gasnet_devices_test name kind ranks program)
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "" "ARGS")
  if(NOT kind IN_LIST DIOMP_GASNET_KINDS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${DIOMP_MPIRUN} --allow-run-as-root --oversubscribe --bind-to none -n ${ranks}
    $<TARGET_FILE:${program}> ${arg_ARGS})
  # Of the other vendor there are none.
  set(vendor "FAKE_HIP_DEVICES=0")
  if(kind STREQUAL "hip")
    set(vendor "FAKE_CUDA_DEVICES=0;SCRIPTED_VENDOR=hip")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "ranks;conduit" TIMEOUT 255 PROCESSORS 2
    ENVIRONMENT "DIOMP_CUDA_LIBRARY=$<TARGET_FILE:fake_cuda>;DIOMP_HIP_LIBRARY=$<TARGET_FILE:fake_hip>;FAKE_CUDA_LOADS=any;FAKE_CUDA_COMPLAINTS=tell;DIOMP_NETWORK_DEVICE_MEMORY=on;GASNET_SUPERNODE_MAXSIZE=1;UCX_TLS=tcp;GTEST_COLOR=no;${vendor};${arg_UNPARSED_ARGUMENTS}"
    ENVIRONMENT_MODIFICATION "LD_LIBRARY_PATH=path_list_prepend:${PROJECT_BINARY_DIR}/tests/device/as-vendors")
endfunction()

# diomp_add_network_tests(<name> [ENV <NAME=VALUE>...] [ARGS <argument>...])
#   Runs a rank test that exists in these ways as well: tests <name>.np<ranks>.<kind>.
function(diomp_add_network_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ENV;ARGS")
  foreach(variant IN LISTS DIOMP_NETWORK_VARIANTS)
    string(REPLACE " " ";" settings "${variant}")
    list(POP_FRONT settings ranks kind)
    add_test(NAME ${name}.np${ranks}.${kind} COMMAND
      diomp-run -n ${ranks} --bind-to none --timeout 240 -- $<TARGET_FILE:${name}> ${arg_ARGS})
    set_tests_properties(${name}.np${ranks}.${kind} PROPERTIES
      LABELS ranks TIMEOUT 255 ENVIRONMENT "${arg_ENV};${settings}" PROCESSORS 2)
  endforeach()
endfunction()

# diomp_add_encrypted_test(<name> [<NAME=VALUE>...]): a rank test on two nodes of two ranks whose data is encrypted.
function(diomp_add_encrypted_test name)
  add_test(NAME ${name}.np4.nodes_encrypted COMMAND
    diomp-run -n 4 --bind-to none --timeout 240 -- $<TARGET_FILE:${name}>)
  set_tests_properties(${name}.np4.nodes_encrypted PROPERTIES
    LABELS ranks TIMEOUT 255 ENVIRONMENT "DIOMP_NODE_SIZE=2;DIOMP_ENCRYPT=all;${ARGN}" PROCESSORS 2)
endfunction()
