#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# `make bench`: measures DiOMP against its peers and draws the curves.
#
#   scripts/bench.sh BUILD [options of bench/compare]     writes BUILD/compare.json and BUILD/compare.png
set -eu
if [ $# -eq 0 ]; then
    echo "usage: scripts/bench.sh BUILD [options of bench/compare]" >&2
    exit 2
fi
build=$1
shift
root=$(dirname "$0")/..
"$root/bench/compare" --build "$build" --json "$build/compare.json" "$@"
"$root/scripts/plot-bench.py" "$build/compare.json" -o "$build/compare.png"
