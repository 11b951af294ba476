#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# usage: gdb_printers.sh PROGRAM PRINTERS    What gdb prints for values of DiOMP's types (contrib/gdb/diomp.py).
set -u
command -v gdb >/dev/null || { echo "skipped: gdb is missing"; exit 77; }
commands=(-ex "source $2" -ex "set breakpoint pending off" -ex "break stop_here" -ex run -ex up)
for value in rank unset fine bad number idle busy; do
    commands+=(-ex "echo $value=" -ex "output $value" -ex "echo \n")
done
printed=$(gdb -nx -batch "${commands[@]}" "$1" 2>&1)
case $printed in
*"Could not trace"* | *"ptrace: Operation not permitted"*) echo "skipped: programs cannot be traced here"; exit 77 ;;
esac
failed=0
expect() {
    grep -qE "$1" <<<"$printed" || { echo "missing: $1"; failed=1; }
}
expect '^rank=world rank 3$'
expect '^unset=local rank none$'
expect '^fine=success$'
expect '^bad=.*OMPX_ERR_RANGE.*12 bytes exceed the segment.*remedy: .*pass fewer'
expect '^number=success: .*42'
expect '^idle=done$'
expect '^busy=1 outstanding, failed with -?[0-9]+$'
[ $failed = 0 ] || echo "$printed"
exit $failed
