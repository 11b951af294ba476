#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Whether the bundle of kernels that is embedded in the runtime has, for each architecture, a code object of that
# architecture with all kernels, without memory for what should be in registers.
#
#   amdgpu-images.sh CLANG FILE.hipfb ARCH...
set -eu
clang=$1
bundle=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readelf=$("$clang" --print-prog-name=llvm-readelf)
wanted=0
for arch in "$@"; do
    "$("$clang" --print-prog-name=clang-offload-bundler)" --unbundle --type=o --input="$bundle" --output="$work/image" \
        --targets="hipv4-amdgcn-amd-amdhsa--$arch"
    "$readelf" --notes --file-header "$work/image" >"$work/notes"
    grep -Eq "Flags:.*$arch(,|\$)" "$work/notes" || { grep Flags: "$work/notes" && echo "not for $arch" && exit 1; }
    kernels=$(grep -c '\.symbol: *diomp_.*\.kd' "$work/notes")
    clean=$(grep -c '\.private_segment_fixed_size: 0$' "$work/notes")
    spills=$(grep -c 'spill_count: *[1-9]' "$work/notes" || true)
    echo "$arch: $kernels kernels, $clean without a stack, $spills with spilled registers"
    [ "$wanted" -eq 0 ] && wanted=$kernels
    [ "$kernels" -gt 0 ] && [ "$kernels" -eq "$wanted" ] && [ "$kernels" -eq "$clean" ] && [ "$spills" -eq 0 ]
done
