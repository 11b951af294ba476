#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles the apps whose target regions communicate for NVIDIA's GPUs, and looks for the instructions that their protocols
# need. Status 77: there is no clang 19 for the target.
#
#   region-code.sh SOURCE_DIR
set -eu
source=$1
target=sm_90
code=$(mktemp)
trap 'rm -f "$code"' EXIT
# shellcheck source-path=SCRIPTDIR source=../support/gpu_code.sh
. "$source/tests/support/gpu_code.sh"

# compile FILE
compile() {
    clang-19 -O3 -ffp-contract=on -std=gnu17 -Wall -Wextra -Wconversion -Werror -Wno-pass-failed -fopenmp -fopenmp-targets=nvptx64 \
        -Xopenmp-target=nvptx64 -march=sm_90 -nogpulib --offload-device-only -S -I"$source/apps" -I"$source/include" \
        "$source/apps/$1" -o - >"$code"
}
command -v clang-19 >/dev/null && clang-19 --print-targets | grep -q "^ *nvptx64 " || {
    echo "skipped: no clang-19 for nvptx64" && exit 77
}
compile minimod/steps_region.c
has 'st.release.sys.u64' 'planes are in the halo before their signal'
has 'ld.acquire.sys.u64' 'the halo is read after its signal'
has 'atom.relaxed.sys.add.u64' 'teams count what they have written'
has 'fence.sc.sys' 'what a team has written comes before its count'
has 'atom.relaxed.sys.min.u64' 'the first step that has failed'
lacks 'ld.global.nc' 'other GPUs write the halo while the kernel runs'
lacks 'call.*ompx_' 'all calls are inline'
compile gups/gups_main.c
has 'atom.relaxed.sys.xor.b64' 'updates are atomic for all GPUs'
lacks 'call.*ompx_' 'all calls are inline'
compile reduce/oneshot_main.c
has 'st.release.sys.u64' 'an operand is in its slot before its signal'
has 'ld.acquire.sys.u64' 'slots are read after their signals'
lacks 'ld.global.nc' 'other GPUs write the slots while the kernel runs'
lacks 'call.*ompx_' 'all calls are inline'
echo "ok"
