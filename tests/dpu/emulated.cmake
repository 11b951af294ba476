# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# In a build for 64-bit Arm: its programs, on this machine. CMake puts the emulator before programs that are targets.
set(emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
function(diomp_add_emulated_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS emulated TIMEOUT 120 PROCESSORS 2 FAIL_REGULAR_EXPRESSION "aborted")
  if(NOT emulator)
    set_tests_properties(${name} PROPERTIES DISABLED TRUE)
  endif()
endfunction()
if(NOT emulator)
  message(STATUS "No qemu-aarch64-static (package qemu-user-static): what is built here is not run")
endif()

add_executable(dpu_threads threads.c)
target_compile_options(dpu_threads PRIVATE -fopenmp)
target_link_options(dpu_threads PRIVATE -fopenmp)
target_link_libraries(dpu_threads PRIVATE diomp_flags)
diomp_add_emulated_test(dpu_threads dpu_threads)

# Every program among the tools, whatever comes to them.
diomp_add_emulated_test(dpu_tools bash "${CMAKE_CURRENT_SOURCE_DIR}/tools.sh" "${PROJECT_BINARY_DIR}/bin" ${emulator})

diomp_add_emulated_test(dpu_info diomp-info)
set_tests_properties(dpu_info PROPERTIES PASS_REGULAR_EXPRESSION
  "DiOMP +${PROJECT_VERSION}.*library +${PROJECT_BINARY_DIR}/lib/libdiomp[.]so.*ranks.*DIOMP_SEGMENT_SIZE = auto")

# Ranks, which the launcher would start without the emulator.
add_executable(dpu_halo "${PROJECT_SOURCE_DIR}/examples/halo.c")
target_compile_options(dpu_halo PRIVATE -fopenmp)
target_link_options(dpu_halo PRIVATE -fopenmp)
target_link_libraries(dpu_halo PRIVATE DiOMP::diomp diomp_flags m)
diomp_add_emulated_test(dpu_ranks
  diomp-run -n 3 --bind-to none --timeout 90 -- ${emulator} $<TARGET_FILE:dpu_halo>)
set_tests_properties(dpu_ranks PROPERTIES PASS_REGULAR_EXPRESSION "heat in the rod after 200 steps: 1000000.000")
diomp_add_emulated_test(dpu_ranks.nodes
  diomp-run -n 2 --bind-to none --timeout 90 -- ${emulator} $<TARGET_FILE:dpu_halo>)
set_tests_properties(dpu_ranks.nodes PROPERTIES ENVIRONMENT DIOMP_NODE_SIZE=1
  PASS_REGULAR_EXPRESSION "heat in the rod after 200 steps: 1000000.000")

# A client of this machine, from the build that make check makes before.
diomp_add_emulated_test(dpu_remote bash "${CMAKE_CURRENT_SOURCE_DIR}/remote.sh" "${PROJECT_SOURCE_DIR}"
  "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/build/dev" ${emulator})
set_tests_properties(dpu_remote PROPERTIES SKIP_RETURN_CODE 77)
