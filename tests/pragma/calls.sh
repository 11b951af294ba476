#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles the programs with directives in several ways and compares the calls that they make with what is expected.
#   calls.sh SOURCE_DIR PLUGIN CLANG       CLANG is its name without ++
set -eu
source=${1:?} plugin=${2:?} clang=${3:?}
clangxx=$(sed 's/clang\([^/]*\)$/clang++\1/' <<<"$clang")
tests=$source/tests/pragma
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# The declarations in diomp.h are what these calls are checked against: no warning of any kind is let through.
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wcast-align -Wunused -Werror)
common=("-I$source/include" "-fplugin=$plugin" "${strict[@]}")

# run EXPECTED NAME COMPILER WORDS...
run() {
    local expected=$1 name=$2
    shift 2
    if ! (cd "$work" && "$@" "$work/recorder.o" -o "$work/program") || ! "$work/program" >"$work/got" ||
        ! diff -u "$tests/$expected" "$work/got"; then
        echo "FAILED: $name: $*"
        failures=$((failures + 1))
    fi
}

"$clang" -O1 -fopenmp "-I$source/include" -c "$tests/recorder.c" -o "$work/recorder.o"
for standard in c99 c11 c17; do
    run calls.expected $standard "$clang" -std=$standard -fopenmp "${common[@]}" -Wno-c11-extensions "$tests/calls.c"
done
for standard in c++11 c++17 c++20; do
    run calls.expected $standard "$clangxx" -std=$standard -fopenmp "${common[@]}" "$tests/calls.cpp"
    [ $standard != c++11 ] || continue
    run templates.expected "templates $standard" "$clangxx" -std=$standard -fopenmp "${common[@]}" -Wold-style-cast \
        -Wzero-as-null-pointer-constant "$tests/templates.cpp"
done
run calls.expected "optimised" "$clang" -O2 -fopenmp "${common[@]}" "$tests/calls.c"
libomp=$(dirname -- "$("$clang" -print-file-name=libomp.so)")
run calls.expected "without OpenMP" "$clang" "${common[@]}" "$tests/calls.c" "-L$libomp" "-Wl,-rpath,$libomp" \
    -Wl,--no-as-needed -lomp
# In two steps, as -save-temps and distributed compilers do it: macros are gone in the second, the pragmas are not.
run calls.expected "preprocessed first" "$clang" -fopenmp -save-temps "${common[@]}" -Wno-gnu-line-marker \
    "$tests/calls.c" "-Wl,-rpath,$libomp"
# Mistakes are reported on the same lines with both, wherever a directive stands.
cat >"$work/lines.c" <<'END'
#include <diomp.h>
#define BARRIER _Pragma("ompx barrier")
#define WRONG _Pragma("ompx target device_bcast(a[0:in_macro])") _Pragma("ompx target device_bcast(a[0:in_second])")
void test(double *a);
void test(double *a) {
    WRONG a[after_macro];
#pragma ompx target device_bcast(a[0:wrong])
    a[after_line];
#pragma ompx target \
    device_bcast(a[0:4])
    a[after_two_lines];
#pragma ompx barrier



    a[after_blank_lines]; _Pragma("ompx fence") a[after_operator]; BARRIER BARRIER a[after_two];
    BARRIER
    a[after_macro_alone];
    { _Pragma("ompx barrier") }

#pragma ompx fence
#pragma omp critical
    a[after_another];
}
END
lines() {
    (cd "$work" && "$clang" -fopenmp "${common[@]}" -w -c "$@" lines.c 2>&1) | sed -n 's/.*:\([0-9]*\):[0-9]*: error: use of undeclared/\1/p'
}
lines >"$work/direct"
lines -save-temps >"$work/preprocessed"
if [ "$(wc -l <"$work/direct")" != 11 ] || ! diff -u "$work/direct" "$work/preprocessed"; then
    echo "FAILED: lines of mistakes in preprocessed code" && failures=$((failures + 1))
fi
# Read once for the host and once for the device.
run calls.expected "with a device's pass" "$clang" -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu "${common[@]}" \
    "$tests/calls.c" "-Wl,-rpath,$libomp"
# A precompiled header with a directive of its own, which is another than the program's first.
echo '#include <diomp.h>
static inline void share(double *p) {
#pragma ompx target device_bcast(p[0:2])
}' >"$work/share.h"
echo 'void add(int *p);
void add(int *p) {
#pragma ompx target device_allreduce(^ : p[0:2])
}' >"$work/add.c"
"$clang" -fopenmp "${common[@]}" -Wno-unused -x c-header "$work/share.h" -o "$work/share.pch"
"$clang" -fopenmp "${common[@]}" -Wno-unused -include-pch "$work/share.pch" -c "$work/add.c" -o "$work/add.o" || {
    echo "FAILED: a precompiled header" && failures=$((failures + 1))
}
# Without the plugin, pragmas that nobody knows: the program is compiled and makes no calls.
"$clang" -fopenmp "-I$source/include" "$tests/calls.c" "$work/recorder.o" -o "$work/program"
"$work/program" >"$work/got"
if grep -qE '^(bcast|allreduce|barrier|alltoall)' "$work/got" || ! grep -qx '0 evaluations' "$work/got"; then
    echo "FAILED: without the plugin" && cat "$work/got"
    failures=$((failures + 1))
fi
"$clang" -fopenmp "-I$source/include" -Wall -fsyntax-only "$tests/calls.c" 2>&1 | grep -q 'unknown pragma ignored' || {
    echo "FAILED: -Wall without the plugin says nothing" && failures=$((failures + 1))
}
[ "$failures" = 0 ] && echo "calls: ok"
exit "$failures"
