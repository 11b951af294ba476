#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs a command and checks how it ends:
#   expect.sh <exit status, or "fail" for any but 0> <pattern that its output must hold> -- command...
set -u
wanted=$1
pattern=$2
shift 3
output=$("$@" 2>&1)
status=$?
printf '%s\n' "$output"
case $wanted in
fail) [ "$status" -ne 0 ] ;;
*) [ "$status" -eq "$wanted" ] ;;
esac || {
    echo "expect.sh: exit status $status, wanted $wanted"
    exit 1
}
# A crash or a time-out is no proper refusal of bad options.
[ "$status" -lt 124 ] || {
    echo "expect.sh: exit status $status"
    exit 1
}
printf '%s\n' "$output" | grep -Eq -- "$pattern" || {
    echo "expect.sh: no line matches: $pattern"
    exit 1
}
