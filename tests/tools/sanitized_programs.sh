#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A user's program under the sanitizers, with a library that is not compiled for them.
#   sanitized_programs.sh BIN_DIR EXAMPLES_DIR
set -u
bin=${1:?directory of diompcc}
examples=${2:?directory of halo.c}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# sane NAME COMPILER: compiled with -fsanitize=NAME, two ranks run as ever. One thread each: OpenMP's runtime is not
# compiled for the thread sanitizer, which would take its waiting for none.
sane() {
    # A compiler that is not here, or whose sanitizer does not get on with this system.
    "$2" "-fsanitize=$1" -x c - -o "$work/empty" <<<"int main(void) { return 0; }" 2>/dev/null && "$work/empty" || return
    DIOMP_CC=$2 "$bin/diompcc" -g "-fsanitize=$1" "$examples/halo.c" -lm -o "$work/halo" 2>"$work/out" &&
        OMP_NUM_THREADS=1 "$bin/diomp-run" -n 2 "$work/halo" >"$work/out" 2>&1 &&
        [ "$(cat "$work/out")" = "heat in the rod after 200 steps: 1000000.000" ] && return
    echo "FAILED: $2 -fsanitize=$1"
    cat "$work/out"
    failures=$((failures + 1))
}

for compiler in clang-19 gcc; do
    for name in address undefined thread; do sane "$name" "$compiler"; done
done

[ "$failures" = 0 ] && echo "sanitized_programs: ok"
exit "$failures"
