# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Run at build time: writes a source with the commit that results carry, and touches the file only when it changes.
execute_process(COMMAND git -C "${SOURCE_DIR}" describe --always --dirty --abbrev=10 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT
  "namespace diomp::bench {\nextern const char *const commit;\nconst char *const commit = \"${commit}\";\n}\n")
