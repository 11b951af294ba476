#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: runs a command, whose output must have a line with PATTERN besides its status being 0.
#
#   expect.sh PATTERN COMMAND [ARGUMENT...]
pattern=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1
status=$?
cat "$log"
[ "$status" = 0 ] || exit "$status"
grep -Eq "$pattern" "$log" || { echo "no line with '$pattern'" && exit 1; }
