#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs that are compiled without -fopenmp, as docs/install.md says: no OpenMP runtime is linked, and they run.
#   without_openmp.sh BUILD_DIR EXAMPLES_DIR
set -u
build=${1:?} examples=${2:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
flags=(-I"$build/include" -L"$build/lib" "-Wl,-rpath,$build/lib" -ldiomp)

# check NAME COMPILER...: compiles examples/hello.c, which uses no OpenMP.
check() {
    local name=$1
    shift
    if ! "$@" >log 2>&1; then
        echo "FAILED: $name does not compile" && cat log && failures=$((failures + 1)) && return
    fi
    if readelf -d hello | grep -E 'NEEDED.*lib(g|i)?omp'; then
        echo "FAILED: $name links an OpenMP runtime" && failures=$((failures + 1))
    fi
    if ! readelf -d hello | grep -q 'NEEDED.*libdiomp'; then
        echo "FAILED: $name is not linked with libdiomp" && failures=$((failures + 1))
    fi
    "$build/bin/diomp-run" -n 3 --timeout 60 ./hello | sort >output
    diff - output <<END || { echo "FAILED: output of $name" && failures=$((failures + 1)); }
rank 0 of 3: my left neighbour is 2
rank 1 of 3: my left neighbour is 0
rank 2 of 3: my left neighbour is 1
END
    rm -f hello
    echo "checked: $name"
}

for compiler in clang-19 gcc; do
    command -v "$compiler" >/dev/null || { echo "not installed: $compiler" && continue; }
    check "$compiler" "$compiler" -O2 -Wall -Werror "$examples/hello.c" -o hello "${flags[@]}"
    check "diompcc -fno-openmp with $compiler" env DIOMP_CC="$compiler" "$build/bin/diompcc" -fno-openmp -O2 -Wall -Werror \
        "$examples/hello.c" -o hello
done
[ "$failures" = 0 ] && echo "without_openmp: ok"
exit "$failures"
