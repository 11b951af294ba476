#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# nowait and depend, on one host and with a device's pass beside it.
#   tasks.sh SOURCE_DIR PLUGIN CLANG       CLANG is its name without ++
set -eu
source=${1:?} plugin=${2:?} clang=${3:?}
tests=$source/tests/pragma
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libomp=$(dirname -- "$("$clang" -print-file-name=libomp.so)")

cat >"$work/expected" <<'END'
bcast_nb x+0 device -2 size 4 root 0 group 0
allreduce_nb x+0 x+0 device -2 size 1 type 5 op 1 group 0
allreduce_nb x+0 x+0 device -2 size 1 type 5 op 1 group 0
bcast_nb x+0 device -2 size 4 root 0 group 0
bcast_nb x+0 device -2 size 4 root 0 group 0
bcast y+0 device -2 size 4 root 0 group 0
bcast_nb values+8 device 2 size 16 root 2 group 2
scatterv_nb values+0 values+0 sizes 8,16 offsets 8,16 device -2 root 0 group 2
reduce_nb x+0 x+0 device -2 size 1 type 5 op 4 root 1 group 0
END
"$clang" -O1 -fopenmp "-I$source/include" -c "$tests/recorder.c" -o "$work/recorder.o"
for options in "-O0" "-O2" "-O1 -fopenmp-targets=x86_64-pc-linux-gnu" "-O1 -x c++"; do
    # shellcheck disable=SC2086 # a list of options
    "$clang" -fopenmp $options "-fplugin=$plugin" -Wall -Wextra -Wpedantic -Werror "-I$source/include" "$tests/tasks.c" \
        -x none "$work/recorder.o" "-Wl,-rpath,$libomp" -lstdc++ -o "$work/program"
    "$work/program" >"$work/got" || { cat "$work/got" && echo "FAILED: $options" && exit 1; }
    diff -u "$work/expected" "$work/got" || { echo "FAILED: $options" && exit 1; }
done
echo "tasks: ok"
