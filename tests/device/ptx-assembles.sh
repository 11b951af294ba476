#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Whether NVIDIA's assembler takes the kernels that are embedded in the runtime, without memory for what should be in registers.
#
#   ptx-assembles.sh SOURCE_DIR FILE.ptx [OPERATIONS]
#
# OPERATIONS: of atomics with system scope that must be in it. Status 77: scripts/gpu-toolchain.sh has fetched no ptxas
set -eu
for operation in ${3:-}; do
    grep -q "atom.relaxed.sys.$operation " "$2" || { echo "no atom.relaxed.sys.$operation" && exit 1; }
done
ptxas=$("$1/scripts/gpu-toolchain.sh" --folder)/bin/ptxas
[ -x "$ptxas" ] || { echo "skipped: there is no $ptxas" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for arch in sm_70 sm_80 sm_90; do
    "$ptxas" --verbose --warning-as-error --gpu-name $arch --output-file "$work/kernels" "$2" >"$work/log" 2>&1 || {
        cat "$work/log"
        exit 1
    }
    kernels=$(grep -c "Compiling entry function 'diomp_" "$work/log")
    clean=$(grep -c "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" "$work/log")
    echo "$arch: $kernels kernels, $clean without a stack"
    [ "$kernels" -gt 0 ] && [ "$kernels" -eq "$clean" ]
done
