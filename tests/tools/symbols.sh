#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What libdiomp.so exports (src/diomp.map, docs/abi.md): its own names in the version DIOMP_1, the names that it interposes
# without one, and nothing else; and a program that was linked with a library without versions runs with this one.
# Usage: symbols.sh LIBRARY C_COMPILER INCLUDE_DIR DIOMP_RUN
set -euo pipefail

library=$1 cc=$2 include=$3 run=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" && exit 1; }

nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' | sort >"$work/exported"
grep -q '^ompx_put@@DIOMP_1$' "$work/exported" || fail "ompx_put has not the version DIOMP_1"
if grep -E '^(ompx|diomp)_' "$work/exported" | grep -v '@@DIOMP_1$'; then
    fail "names of the interface without the version DIOMP_1"
fi
printf '%s\n' __kmpc_aligned_alloc __kmpc_alloc __kmpc_free __libc_start_main omp_aligned_alloc omp_aligned_calloc omp_alloc \
    omp_calloc omp_free omp_realloc | LC_ALL=C sort >"$work/interposed"
grep -vE '^(ompx|diomp)_' "$work/exported" | LC_ALL=C sort | diff "$work/interposed" - ||
    fail "the names outside of the interface are not the interposed ones (left), each without a version"

# Thread-local memory is taken from what the C library keeps for libraries that are loaded later (1664 bytes for all of them):
# Python and the sessions of device services load this one by dlopen.
thread_bytes=$((16#$(readelf -lW "$library" | awk '$1 == "TLS" { print substr($6, 3) }')))
[ "$thread_bytes" -gt 0 ] && [ "$thread_bytes" -le 1152 ] || fail "$thread_bytes bytes of memory for each thread"

# A program linked with a library that has the names and no versions.
cat >"$work/program.c" <<'END'
#include <diomp.h>
int main(void) {
    int one = 1, all = 0;
    ompx_allreduce(&all, &one, 1, OMPX_INT32, OMPX_SUM, ompx_group_world);
    return all == ompx_num_ranks() ? 42 : 1;
}
END
cat >"$work/earlier.c" <<'END'
int ompx_allreduce(void) { return 0; }
int ompx_num_ranks(void) { return 0; }
END
soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
mkdir "$work/earlier"
"$cc" -shared -fPIC -Wl,-soname,"$soname" "$work/earlier.c" -o "$work/earlier/$soname"
"$cc" -I"$include" "$work/program.c" -o "$work/program" -L"$work/earlier" -l:"$soname" -Wl,-rpath,"$(dirname "$library")"
if nm -D --with-symbol-versions "$work/program" | grep 'ompx_.*@'; then
    fail "the program was to be linked without versions"
fi
status=0
"$run" -n 2 "$work/program" 2>"$work/errors" || status=$?
[ "$status" = 42 ] || fail "a program that was linked without versions: exit status $status, $(cat "$work/errors")"
echo "symbols: $(wc -l <"$work/exported") names"
