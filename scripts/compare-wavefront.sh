#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Minimod alone, on all cores, against the memory's speed, with and without several steps in one sweep:
#   scripts/compare-wavefront.sh BUILD_DIR [OTHER_BUILD_DIR ...]
# ROUNDS (5) rounds for each of GRIDS ("300 400") and STEPS_TOGETHER ("1 4 8"), builds and sweeps in turn; the table has
# medians, the range, and the least traffic (16 bytes a point) as a share of what the program itself has measured of the
# memory in the same run: STREAM's triad.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -x "$1/bin/minimod" ]; then
    echo "usage: compare-wavefront.sh BUILD_DIR [OTHER_BUILD_DIR ...]; needs bin/minimod" >&2
    exit 2
fi
results=$(mktemp)
trap 'rm -f "$results"' EXIT
export OMP_PROC_BIND=true

for grid in ${GRIDS:-300 400}; do
    for ((i = 0; i < ${ROUNDS:-5}; ++i)); do
        for together in ${STEPS_TOGETHER:-1 4 8}; do
            for build in "$@"; do
                "$build/bin/minimod" --grid "$grid" --steps 24 --receivers 1 --progress off --wavefront "$together" |
                    awk -v name="$build $grid $together" '
                        /^speed/ { speed = $2 }
                        /^memory/ { share = 16 * speed / $(NF - 1) }
                        /^checksum/ { print name, speed, share, $2 }' >>"$results"
            done
        done
    done
done

printf '%-20s %5s %9s %10s %15s %7s\n' build grid together Gpoints/s '(range)' share
sort -k1,3 -k4,4g "$results" | awk '
    function median(values, n) { return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2 }
    function flush_group(    i, j, x) {
        if (n == 0) return
        for (i = 2; i <= n; ++i) for (j = i; j > 1 && share[j] < share[j - 1]; --j) {
            x = share[j]; share[j] = share[j - 1]; share[j - 1] = x
        }
        split(group, part, " ")
        printf "%-20s %5d %9d %10.3f %15s %7.2f\n", part[1], part[2], part[3], median(speed, n),
            "(" speed[1] "-" speed[n] ")", median(share, n)
    }
    { key = $1 " " $2 " " $3 }
    key != group { flush_group(); group = key; n = 0 }
    { speed[++n] = $4; share[n] = $5 }
    END { flush_group() }'
if [ "$(awk '{ print $2, $6 }' "$results" | sort -u | wc -l)" != "$(awk '{ print $2 }' "$results" | sort -u | wc -l)" ]; then
    echo "compare-wavefront.sh: the checksums differ" >&2
    exit 1
fi
