# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The include path is the project root, not bench/: there the script `compare` would be taken for <compare>.
# Programs of other libraries, built by those libraries' own compiler wrappers around our compiler, with our
# optimisation. Two MPI libraries cannot be found by one find_package(MPI), hence custom commands.

# diomp_add_bench_peer(<name> SOURCE <file> COMPILERS <wrapper>...): the first wrapper that works builds it.
function(diomp_add_bench_peer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE" "COMPILERS")
  find_program(${name}_COMPILER NAMES ${arg_COMPILERS})
  mark_as_advanced(${name}_COMPILER)
  if(NOT ${name}_COMPILER)
    message(STATUS "bench: ${name} left out, none of these is installed: ${arg_COMPILERS}")
    return()
  endif()
  # The wrappers of Open MPI, MPICH and Open MPI's OpenSHMEM take the compiler from these variables.
  set(wrapper ${CMAKE_COMMAND} -E env "OMPI_CXX=${CMAKE_CXX_COMPILER}" "MPICH_CXX=${CMAKE_CXX_COMPILER}"
    "OSHMEM_CXX=${CMAKE_CXX_COMPILER}" "${${name}_COMPILER}")
  diomp_bench_peer_works(${name} "${wrapper}" "${arg_SOURCE}")
  if(NOT ${name}_WORKS)
    message(STATUS "bench: ${name} left out, ${${name}_COMPILER} does not compile its header")
    return()
  endif()
  set(flags -std=c++20 -O2 -g -DNDEBUG -Wall -Wextra -Wshadow -Wconversion -fno-omit-frame-pointer -pthread)
  if(DIOMP_WERROR)
    list(APPEND flags -Werror)
  endif()
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SOURCE}")
  add_custom_command(OUTPUT "${program}.o"
    COMMAND ${wrapper} ${flags} "-I${PROJECT_SOURCE_DIR}"
            -MD -MF "${program}.d" -MT "${program}.o" -c "${source}" -o "${program}.o"
    DEPENDS "${source}" DEPFILE "${program}.d" VERBATIM)
  add_custom_command(OUTPUT "${program}"
    COMMAND ${wrapper} -pthread "${program}.o" "$<TARGET_FILE:bench_commit>" "$<TARGET_FILE:bench_options>"
            -o "${program}"
    DEPENDS "${program}.o" bench_commit bench_options VERBATIM)
  add_custom_target(build_${name} ALL DEPENDS "${program}")
endfunction()

# Sets <name>_WORKS in the caller (and the cache: tried once per compiler).
function(diomp_bench_peer_works name wrapper source)
  if("${${name}_WORKS_FOR}" STREQUAL "${wrapper}")
    return()
  endif()
  set(header mpi.h)
  if(source MATCHES shmem)
    set(header shmem.h)
  endif()
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/${name}_probe")
  file(WRITE "${probe}.cpp" "#include <${header}>\nint main() { return 0; }\n")
  execute_process(COMMAND ${wrapper} -std=c++20 "${probe}.cpp" -o "${probe}"
    OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(works NO)
  else()
    set(works YES)
  endif()
  set(${name}_WORKS ${works} CACHE INTERNAL "")
  set(${name}_WORKS_FOR "${wrapper}" CACHE INTERNAL "")
endfunction()
