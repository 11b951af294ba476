# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How tests are declared. Each rank count of a multi-rank test is a ctest test of its own.
find_package(GTest REQUIRED)

# diomp_add_unit_test(<name> <source>... [ENV <NAME=VALUE>...] [LIBRARIES <target>...])
#   GoogleTest in one process, linked with the runtime's objects, so it sees internal symbols. Label: unit.
function(diomp_add_unit_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "ENV;LIBRARIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE
    diomp_objects diomp_flags ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${arg_ENV}")
endfunction()

# diomp_add_rank_test(<name> NP <n>... SOURCES <source>... [GTEST] [ENV <NAME=VALUE>...] [ARGS <argument>...]
#                     [LIBRARIES <target>...] [TIMEOUT <seconds>])
#   A program linked with the shared library as a user's would be, run by diomp-run as test <name>.np<n>.
#   GTEST adds tests/support/rank_main.cpp, so that the sources hold TEST()s only. Label: ranks.
function(diomp_add_rank_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GTEST" "TIMEOUT" "NP;SOURCES;ENV;ARGS;LIBRARIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  math(EXPR ctest_timeout "${arg_TIMEOUT} + 15")
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE DiOMP::diomp diomp_flags ${arg_LIBRARIES})
  if(arg_GTEST)
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/rank_main.cpp")
    target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest)
  endif()
  foreach(ranks IN LISTS arg_NP)
    # Unbound, since several tests may run at once and would share the first cores.
    add_test(NAME ${name}.np${ranks} COMMAND
      diomp-run -n ${ranks} --bind-to none --timeout ${arg_TIMEOUT} -- $<TARGET_FILE:${name}> ${arg_ARGS})
    set_tests_properties(${name}.np${ranks} PROPERTIES
      LABELS ranks TIMEOUT ${ctest_timeout} ENVIRONMENT "${arg_ENV}" PROCESSORS 2)
  endforeach()
endfunction()

# diomp_add_network_tests(<name> [ENV <NAME=VALUE>...])
#   Runs a rank test that exists over the network as well, where there is one in the build: two nodes of one rank, two
#   of two, and three ranks of one node that are forced to use it. Tests <name>.np<n>.nodes and <name>.np3.ucx.
function(diomp_add_network_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ENV")
  if(NOT UCX_FOUND)
    return()
  endif()
  foreach(variant "2 nodes DIOMP_NODE_SIZE=1" "4 nodes DIOMP_NODE_SIZE=2" "3 ucx DIOMP_CONDUIT=ucx")
    string(REPLACE " " ";" words "${variant}")
    list(POP_FRONT words ranks kind setting)
    add_test(NAME ${name}.np${ranks}.${kind} COMMAND
      diomp-run -n ${ranks} --bind-to none --timeout 240 -- $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.np${ranks}.${kind} PROPERTIES
      LABELS ranks TIMEOUT 255 ENVIRONMENT "${arg_ENV};${setting};UCX_TLS=tcp" PROCESSORS 2)
  endforeach()
endfunction()
