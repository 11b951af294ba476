#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Two commands must both succeed and print the same checksum, or different ones:
#   same-checksum.sh same|differ command... --and command...
set -u
wanted=$1
shift
first=$(mktemp)
trap 'rm -f "$first"' EXIT
: >"$first"
# Split the arguments at --and; none of ours holds a line break.
while [ "$1" != "--and" ]; do
    printf '%s\n' "$1" >>"$first"
    shift
done
shift
ours=$(tr '\n' '\0' <"$first" | xargs -0 env) || { printf '%s\nfirst command failed\n' "$ours"; exit 1; }
theirs=$("$@") || { printf '%s\nsecond command failed\n' "$theirs"; exit 1; }
a=$(printf '%s\n' "$ours" | grep -E '^checksum')
b=$(printf '%s\n' "$theirs" | grep -E '^checksum')
printf '%s\n%s\n' "$a" "$b"
[ -n "$a" ] && [ -n "$b" ] || exit 1
case $wanted in
same) [ "$a" = "$b" ] ;;
differ) [ "$a" != "$b" ] ;;
*) exit 1 ;;
esac
