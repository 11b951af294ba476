#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the coverage preset, runs its unit and rank tests, and prints which lines and branches of src/ they reached:
# by file on the screen, by line in build/coverage/lines.txt.
set -eu
cd "$(dirname "$0")/.."
build=build/coverage
cmake --preset coverage >/dev/null
cmake --build --preset coverage -j "${JOBS:-$(nproc)}"

rm -rf "$build/profiles"
mkdir -p "$build/profiles"
# One file per program, merged by the processes themselves: ranks are many, programs few.
LLVM_PROFILE_FILE="$PWD/$build/profiles/%m.profraw" ctest --preset coverage -j "${JOBS:-$(nproc)}" || failed=yes
llvm-profdata-19 merge -sparse "$build"/profiles/*.profraw -o "$build/all.profdata"

objects=()
while IFS= read -r -d '' program; do
    objects+=(-object "$program")
done < <(find "$build/tests" -type f -perm -u+x ! -name '*.sh' -print0)
llvm-cov-19 report "$build/lib/libdiomp.so" "${objects[@]}" -instr-profile="$build/all.profdata" "$PWD/src"
llvm-cov-19 show "$build/lib/libdiomp.so" "${objects[@]}" -instr-profile="$build/all.profdata" "$PWD/src" >"$build/lines.txt"
[ -z "${failed:-}" ]
