# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `cmake --install` puts where: a prefix that can be moved as a whole.
include(CMakePackageConfigHelpers)

install(TARGETS diomp EXPORT DiOMPTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# The tools find the library beside themselves, wherever the prefix stands, and in the build tree, whose folder is lib. They
# are linked with that run path: CMake would otherwise make room for another one by empty elements, which stand for the
# working directory.
file(RELATIVE_PATH bin_to_lib "/p/${CMAKE_INSTALL_BINDIR}" "/p/${CMAKE_INSTALL_LIBDIR}")
set(run_path "$ORIGIN/${bin_to_lib}" "$ORIGIN/../lib")
list(REMOVE_DUPLICATES run_path)
foreach(tool diomp-run diomp-info diomp-bench diomp-deviced)
  if(TARGET ${tool})
    set_target_properties(${tool} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${run_path}")
    install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/DiOMP")
install(EXPORT DiOMPTargets NAMESPACE DiOMP:: DESTINATION "${package_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/DiOMPConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/install/DiOMPConfig.cmake" INSTALL_DESTINATION "${package_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/install/DiOMPConfigVersion.cmake"
  COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/install/DiOMPConfig.cmake"
  "${PROJECT_BINARY_DIR}/install/DiOMPConfigVersion.cmake" DESTINATION "${package_dir}")

file(RELATIVE_PATH pkgconfig_to_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/diomp.pc.in" "${PROJECT_BINARY_DIR}/install/diomp.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/install/diomp.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

include(DiompCompletion)
configure_file("${PROJECT_SOURCE_DIR}/contrib/env.sh.in" "${PROJECT_BINARY_DIR}/install/env.sh" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/install/env.sh" DESTINATION ".")
set(modulefiles "${CMAKE_INSTALL_DATADIR}/modulefiles/diomp")
file(RELATIVE_PATH modulefiles_to_prefix "/p/${modulefiles}" "/p")
configure_file("${PROJECT_SOURCE_DIR}/contrib/modulefiles/diomp.in"
  "${PROJECT_BINARY_DIR}/install/modulefiles/diomp/${PROJECT_VERSION}" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/install/modulefiles/diomp/${PROJECT_VERSION}" DESTINATION "${modulefiles}")
install(FILES "${PROJECT_SOURCE_DIR}/contrib/systemd/diomp-deviced.service"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/diomp/systemd")
foreach(section 1 7)
  file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.${section}")
  install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endforeach()
# Section 3 is made from the headers.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND)
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/diomp/*.h")
  set(manual "${PROJECT_BINARY_DIR}/install/man3")
  add_custom_command(OUTPUT "${manual}/diomp.3"
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/api-man.py" "${PROJECT_SOURCE_DIR}/scripts/api-reference.py"
      "${PROJECT_SOURCE_DIR}/include/diomp.h" ${headers}
    COMMAND Python3::Interpreter -B "${PROJECT_SOURCE_DIR}/scripts/api-man.py" "${manual}")
  add_custom_target(diomp_manual ALL DEPENDS "${manual}/diomp.3")
  file(MAKE_DIRECTORY "${manual}")
  install(DIRECTORY "${manual}" DESTINATION "${CMAKE_INSTALL_MANDIR}")
else()
  message(STATUS "No manual pages of the interface: no Python 3")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "man" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
