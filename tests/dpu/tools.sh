#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Does every program among the tools of a build for 64-bit Arm start there?
#   tools.sh BIN_DIR EMULATOR...
set -u
bin=${1:?}
shift
[ $# -gt 0 ] || { echo "no emulator" && exit 1; }
programs=0
failures=0
for tool in "$bin"/*; do
    readelf -h "$tool" 2>/dev/null | grep -q 'Machine: *AArch64' || {
        ! readelf -h "$tool" >/dev/null 2>&1 || { echo "FAILED: $tool is for another processor" && failures=$((failures + 1)); }
        continue # a script
    }
    programs=$((programs + 1))
    help=$("$@" "$tool" --help 2>&1 </dev/null) && [ -n "$help" ] && continue
    echo "FAILED: $tool --help: $help"
    failures=$((failures + 1))
done
[ "$programs" -ge 2 ] || { echo "FAILED: $programs programs in $bin" && exit 1; }
[ "$failures" = 0 ] && echo "tools: ok ($programs)"
exit "$failures"
