# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Completion for bash, zsh and fish, in the directories where these look below a prefix. bash and fish load a file by the
# name of the tool.
set(completion_dir "${PROJECT_BINARY_DIR}/install/completion")
set(completion_sources "${PROJECT_SOURCE_DIR}/contrib/completion")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${completion_sources}/options.awk")
file(READ "${completion_sources}/options.awk" DIOMP_OPTIONS_AWK)
configure_file("${completion_sources}/diomp.bash.in" "${completion_dir}/diomp.bash" @ONLY)
configure_file("${completion_sources}/diomp.zsh.in" "${completion_dir}/_diomp" @ONLY)
install(FILES "${completion_dir}/_diomp" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
foreach(tool diomp-run diomp-info diomp-bench diomp-deviced diomp-trace diompcc diompcxx diompfc)
  configure_file("${completion_sources}/diomp.fish.in" "${completion_dir}/fish/${tool}.fish" @ONLY)
  install(FILES "${completion_dir}/fish/${tool}.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
  install(FILES "${completion_dir}/diomp.bash" RENAME "${tool}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
endforeach()
