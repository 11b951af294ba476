#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Minimod as one program for several GPUs and for host devices: are the images in it that libomptarget accepts, and does it
# compute on what this machine has? Status 77: the GPU toolchain is not there (scripts/gpu-toolchain.sh), or LLVM has no
# device runtime.
#
#   fat-binary.sh SOURCE_DIR BUILD_DIR LLVM_VERSION
set -eu
source=$1
build=$2
version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

archs="sm_80 sm_90 host"
"$source/scripts/gpu-toolchain.sh" --flags --llvm "$version" $archs >"$work/flags" 2>"$work/why" || {
    echo "skipped: $(cat "$work/why")"
    exit 77
}
if "$source/scripts/gpu-toolchain.sh" --flags --llvm "$version" gfx90a >/dev/null 2>"$work/why"; then
    archs="$archs gfx90a"
else
    echo "without gfx90a: $(cat "$work/why")"
fi

# shellcheck disable=SC2046 # a list of options
"$build/bin/diompcc" -O2 -ffp-contract=on -I"$source/apps" $("$source/scripts/gpu-toolchain.sh" --flags --llvm "$version" $archs) \
    "$source"/apps/common/comm_diomp.c "$source"/apps/common/device.c "$source"/apps/common/options.c \
    "$source"/apps/common/progress.c "$source"/apps/minimod/compute_target.c "$source"/apps/minimod/halo_target.c \
    "$source"/apps/minimod/minimod_*.c "$source"/apps/minimod/steps_host.c -lm -o "$work/minimod"

llvm-objdump-19 --offloading "$work/minimod" | sed -n 's/^\(arch\|triple\) *//p' | paste -d ' ' - - >"$work/images"
echo "images:"
cat "$work/images"
for arch in $archs; do
    case $arch in
    sm_*) image="$arch nvptx64-nvidia-cuda" ;;
    gfx*) image="$arch amdgcn-amd-amdhsa" ;;
    host) image=" $(uname -m)-pc-linux-gnu" ;;
    esac
    grep -qxF "$image" "$work/images" || { echo "no image '$image' in the program" && exit 1; }
done
# The images' headers as libomptarget 19 reads them: anything else it passes over without a word.
python3 "$source/tests/offload/image_headers.py" "$work/minimod" $archs

# Here on host devices, which are the first of the program's devices.
export OMP_NUM_THREADS=1
"$build/bin/diomp-run" -n 2 --bind-to none --timeout 60 -- "$work/minimod" --grid 20 17 18 --steps 30 --check \
    >"$work/output" || { cat "$work/output" && exit 1; }
cat "$work/output"
grep -q "wavefield .* the one-rank result" "$work/output"
# The same program without a device computes on the host, to the same result.
OMP_TARGET_OFFLOAD=DISABLED "$build/bin/diomp-run" -n 2 --bind-to none --timeout 60 -- "$work/minimod" \
    --grid 20 17 18 --steps 30 --check >"$work/disabled"
[ "$(grep ^checksum "$work/output")" = "$(grep ^checksum "$work/disabled")" ]
