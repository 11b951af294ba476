#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cuda_plugin_test.c with our libomptarget and runtime, on a stand-in for CUDA's driver. Status 77: the GPU toolchain is not
# there (scripts/gpu-toolchain.sh), or LLVM has no device runtime.
#
#   cuda-plugin.sh SOURCE_DIR BUILD_DIR LLVM_VERSION STAND_IN
set -eu
# shellcheck source-path=SCRIPTDIR source=stand-in-driver.sh
. "$(dirname "$0")/stand-in-driver.sh"
# shellcheck disable=SC2086 # a list of options
"$build/bin/diompcc" -O1 $flags -I"$source/tests" "$source/tests/offload/cuda_plugin_test.c" -o "$work/program"
# run RANKS [NAME=VALUE]...
run() {
    count=$1
    shift
    run_ranks "$count" "plugin for CUDA: ok" "$@"
}
run 1
run 2
run 4
run 4 DIOMP_NODE_SIZE=2
run 3 DIOMP_NODE_SIZE=2 DIOMP_DEVICE_PATHS=bounce
# Large private memory passes through pinned chunks, unless the driver is to copy it, or another thread has them.
# pageable RANKS BYTES [NAME=VALUE]...: the largest copy of memory that is not pinned.
pageable() {
    ranks=$1
    bytes=$2
    shift 2
    (run "$ranks" FAKE_CUDA_SHOW_PAGEABLE=1 "$@") >"$work/shown" || { cat "$work/shown" && exit 1; }
    [ "$(grep -c "largest pageable copy: $bytes\$" "$work/shown")" = "$ranks" ] || {
        echo "wanted pageable copies of $bytes with $*:" && cat "$work/shown" && exit 1
    }
}
whole=$((41 * 1024 * 1024 + 12345))
pageable 1 20000 DIOMP_COPY_THREADS=3
pageable 2 20000 DIOMP_COPY_THREADS=2
pageable 1 20000 DIOMP_COPY_THREADS=64
pageable 1 $whole DIOMP_COPY_THREADS=0
pageable 1 $whole DIOMP_COPY_THREADS=1
run 2 DIOMP_COPY_THREADS=3 ALL_AT_ONCE=1
# How threads wait: flags of the context, by the setting and by ranks and cores.
# wait_flags RANKS FLAGS [NAME=VALUE]...
wait_flags() {
    ranks=$1
    flags=$2
    shift 2
    (run "$ranks" FAKE_CUDA_SHOW_FLAGS=1 "$@") >"$work/shown" || { cat "$work/shown" && exit 1; }
    grep -q "context flags: $flags\$" "$work/shown" && ! grep "context flags" "$work/shown" | grep -qv ": $flags\$" || {
        echo "wanted flags $flags with $* and $ranks ranks:" && cat "$work/shown" && exit 1
    }
}
wait_flags 1 0
wait_flags 2 1 DIOMP_DEVICE_WAIT=spin
wait_flags 2 2 DIOMP_DEVICE_WAIT=yield
wait_flags 2 4 DIOMP_DEVICE_WAIT=block
crowd=$(($(getconf _NPROCESSORS_ONLN) + 1))
if [ "$crowd" -le 9 ]; then # ranks for a small machine
    wait_flags "$crowd" 4
    wait_flags "$crowd" 0 DIOMP_NODE_SIZE=1
fi
