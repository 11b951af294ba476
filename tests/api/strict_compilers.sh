#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs that include the headers compile without a warning, however strict their options are.
#   strict_compilers.sh INCLUDE_DIR
set -u
include=${1:?directory of diomp.h}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

cat >"$work/both.c" <<'END'
#include <diomp.h>
int main(void) {
    ompx_group_t group = ompx_group_world;
    return ompx_barrier() + ompx_barrier(group) + ompx_fence() + ompx_fence(group) + ompx_barrier(NULL);
}
END
cp "$work/both.c" "$work/both.cpp"
printf '#include <diomp.hpp>\nint main() { return diomp::this_rank(); }\n' >"$work/types.cpp"

# strict FILE STANDARD COMPILER...: those of the compilers that are installed.
strict() {
    local file=$1 standard=$2 compiler
    shift 2
    for compiler in "$@"; do
        command -v "$compiler" >/dev/null || continue
        "$compiler" "-std=$standard" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "-I$include" -fsyntax-only \
            "$work/$file" 2>"$work/err" && continue
        echo "FAILED: $compiler -std=$standard: $file"
        cat "$work/err"
        failures=$((failures + 1))
    done
}

for standard in c99 c11 gnu11 c2x; do strict both.c "$standard" clang-19 gcc; done
for standard in c++11 c++17 c++20; do strict both.cpp "$standard" clang++-19 g++; done
strict types.cpp c++20 clang++-19 g++

[ "$failures" = 0 ] && echo "strict_compilers: ok"
exit "$failures"
