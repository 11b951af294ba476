#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# compile_test.sh BIN SOURCE: compiles a SHMEM program as a user does, in C and C++, and runs it. Without --shmem the header
# must not be found.
set -eu
bin=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

expect() {
    "$bin/diomp-run" -n 2 --bind-to none --timeout 30 -- "$folder/$1" | sort >"$folder/output"
    printf 'PE 0 of 2: 101\nPE 1 of 2: 100\n' | diff - "$folder/output"
}

"$bin/diompcc" --shmem -Wall -Wextra -Werror "$source" -o "$folder/in_c"
expect in_c
"$bin/diompcc" --shmem -c "$source" -o "$folder/object.o"
"$bin/diompcc" --shmem "$folder/object.o" -o "$folder/in_steps"
expect in_steps
"$bin/diompcxx" --shmem -x c++ "$source" -o "$folder/in_cxx"
expect in_cxx
if "$bin/diompcc" -c "$source" -o "$folder/object.o" 2>"$folder/errors"; then
    echo "diompcc without --shmem found a shmem.h" >&2
    exit 1
fi
grep -q "shmem.h" "$folder/errors"
