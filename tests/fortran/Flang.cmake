# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The tests of the Fortran module with flang of each version that the module was built for, by diompfc as a user calls it.
# diomp_flang_program(VERSION NAME SOURCE): the program NAME.flang_VERSION
function(diomp_flang_program version name source)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/flang-${version}")
  set(fc "${CMAKE_COMMAND}" -E env "DIOMP_FC=${DIOMP_FLANG_${version}}" "${PROJECT_BINARY_DIR}/bin/diompfc" -O1 -fopenmp-version=52 -w)
  set(needed diomp diomp_fortran_flang_${version} diomp_flang_regions "${PROJECT_BINARY_DIR}/bin/diompfc")
  if(NOT TARGET fortran_checks_flang_${version})
    add_custom_command(OUTPUT "${folder}/checks.o" COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND ${fc} -c "${CMAKE_CURRENT_SOURCE_DIR}/checks.f90" -module-dir "${folder}" -o "${folder}/checks.o"
      DEPENDS checks.f90 ${needed} VERBATIM)
    add_custom_target(fortran_checks_flang_${version} DEPENDS "${folder}/checks.o")
  endif()
  set(options "")
  if(name STREQUAL "regions")
    set(options -cpp -fopenmp-targets=${CMAKE_SYSTEM_PROCESSOR}-pc-linux-gnu)
    list(APPEND needed diomp_omptarget_${version})
  elseif(name STREQUAL "devices")
    set(options "-L$<TARGET_FILE_DIR:fortran_kernels>" -lfortran_kernels "-Wl,-rpath,$<TARGET_FILE_DIR:fortran_kernels>")
    list(APPEND needed fortran_kernels)
  endif()
  add_custom_command(OUTPUT "${folder}/${name}" COMMAND ${fc} "-I${folder}" "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
      "${folder}/checks.o" ${options} -o "${folder}/${name}"
    DEPENDS "${source}" "${folder}/checks.o" ${needed} VERBATIM)
  add_custom_target(fortran_${name}_flang_${version} ALL DEPENDS "${folder}/${name}")
  add_dependencies(fortran_${name}_flang_${version} fortran_checks_flang_${version})
endfunction()
# diomp_flang_test(VERSION NAME VARIANT RANKS ENVIRONMENT OPTION...): by diomp-run with these options
function(diomp_flang_test version name variant ranks environment)
  set(test fortran_${name}.${variant}.flang_${version})
  add_test(NAME ${test} COMMAND diomp-run -n ${ranks} --bind-to none --timeout 60 ${ARGN} --
    "${CMAKE_CURRENT_BINARY_DIR}/flang-${version}/${name}")
  set_tests_properties(${test} PROPERTIES LABELS ranks TIMEOUT 75 PROCESSORS 2 PASS_REGULAR_EXPRESSION "passed"
    FAIL_REGULAR_EXPRESSION "wrong: |aborted|warning: " ENVIRONMENT "${environment}")
endfunction()

foreach(version IN LISTS DIOMP_FLANG_VERSIONS)
  set(programs transfer sections collective blocks nonblocking channels misuse calls waits)
  if(version LESS 20)
    list(REMOVE_ITEM programs transfer) # flang 19 has no clause detach, which devices has too
  endif()
  foreach(name IN LISTS programs)
    diomp_flang_program(${version} ${name} ${name}_test.f90)
    set(environment "")
    if(name MATCHES "misuse|channels|blocks")
      set(environment DIOMP_ERRORS=return)
    endif()
    diomp_flang_test(${version} ${name} np2 2 "${environment}")
  endforeach()
  if(version IN_LIST DIOMP_OFFLOAD_VERSIONS)
    diomp_flang_program(${version} regions regions_test.F90)
    diomp_flang_test(${version} regions np1 1 "")
    diomp_flang_test(${version} regions np2 2 "")
    diomp_flang_test(${version} regions remote 2 "DIOMP_LOCAL_DEVICES=off" --remote-devices localhost:2)
    if(TARGET fortran_kernels AND version STREQUAL DIOMP_LLVM_VERSION AND NOT version LESS 20)
      diomp_flang_program(${version} devices devices_test.f90)
      diomp_flang_test(${version} devices np2 2 "DIOMP_DEVICE_SEGMENT_SIZE=64M")
    endif()
  endif()
endforeach()
if(NOT DIOMP_FLANG_VERSIONS)
  add_test(NAME fortran_flang COMMAND "${CMAKE_COMMAND}" -E echo "skipped: no flang of LLVM ${DIOMP_LLVM_VERSIONS} in this build")
  set_tests_properties(fortran_flang PROPERTIES LABELS ranks SKIP_REGULAR_EXPRESSION "^skipped: ")
endif()
