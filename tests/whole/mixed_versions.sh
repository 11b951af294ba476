#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A rank that loads another version of libdiomp than rank 0 ends the job at its start, with both versions in the message.
# The other version is a copy of the library in which the number has been changed.
# Usage: mixed_versions.sh LIBRARY C_COMPILER INCLUDE_DIR DIOMP_RUN VERSION
set -euo pipefail

library=$1 cc=$2 include=$3 run=$4 version=$5
other=${version%?}9
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" && exit 1; }

soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
mkdir "$work/other"
sed "s/libdiomp version $version/libdiomp version $other/" "$library" >"$work/other/$soname"
cmp -s "$library" "$work/other/$soname" && fail "the library does not contain its version"

cat >"$work/program.c" <<'END'
#include <diomp.h>
int main(void) { return ompx_num_ranks() == 3 ? 0 : 1; }
END
"$cc" -I"$include" "$work/program.c" -o "$work/program" "$library"
cat >"$work/rank" <<END
#!/bin/sh
folder=$(dirname "$library")
[ "\$DIOMP_RANK" = "\$WITH_OTHER" ] && folder=$work/other
LD_LIBRARY_PATH=\$folder exec "$work/program"
END
chmod +x "$work/rank"

WITH_OTHER=none "$run" -n 3 "$work/rank" || fail "ranks with one version do not start"
for odd in 0 2; do
    if WITH_OTHER=$odd "$run" -n 3 "$work/rank" 2>"$work/errors"; then
        fail "rank $odd has another version, and the job succeeds"
    fi
    cat "$work/errors"
    if [ "$odd" = 0 ]; then
        expected="rank [12] on [^ ]* has loaded version $version of libdiomp, and rank 0 version $other"
    else
        expected="rank 2 on [^ ]* has loaded version $other of libdiomp, and rank 0 version $version"
    fi
    grep -q "$expected" "$work/errors" || fail "no message of that kind: $expected"
    grep -q "LD_LIBRARY_PATH" "$work/errors" || fail "the message does not say what to do"
done
