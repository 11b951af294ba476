#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Feeds what a connection reaches before its peer has proved anything, and its frames, inputs of libFuzzer
# under the address and undefined-behaviour sanitizers: scripts/fuzz.sh [RUNS [FOLDER]]
# FOLDER keeps the inputs that have reached new code; by default a temporary one. Results: bench/results/fuzz.txt.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-100000000}
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"

cmake --preset asan -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 > /dev/null
cmake --build --preset asan --target base_secure_libfuzzer
git describe --always --dirty
sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c
nice -n 15 build/asan/tests/base/secure/base_secure_libfuzzer -runs="$runs" -max_len=700 -timeout=60 \
    -print_final_stats=1 -verbosity=1 "$folder" 2>&1 | grep -E '^(Done|stat::)|ERROR|SUMMARY|fuzz:'
