# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh
# Read by tests that run on a stand-in for CUDA's driver, with their arguments SOURCE_DIR BUILD_DIR LLVM_VERSION STAND_IN: sets
# source, build, version, work (a folder) and flags (of diompcc), and defines run_ranks. Status 77: the GPU toolchain is not there
# (scripts/gpu-toolchain.sh), or LLVM has no device runtime.
source=$1
build=$2
version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=$("$source/scripts/gpu-toolchain.sh" --flags --llvm "$version" sm_80 2>"$work/why") || {
    echo "skipped: $(cat "$work/why")"
    exit 77
}
mkdir "$work/driver"
cp "$4" "$work/driver/libcuda.so.1"
ln -s libcuda.so.1 "$work/driver/libcuda.so" # the name that LLVM's packages look for

# run_ranks RANKS LINE [NAME=VALUE]...: runs $work/program, which prints LINE on every rank.
run_ranks() {
    ranks=$1
    line=$2
    shift 2
    env "$@" FAKE_CUDA_MEBIBYTES=1024 LD_LIBRARY_PATH="$work/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        OMP_TARGET_OFFLOAD=MANDATORY "$build/bin/diomp-run" -n "$ranks" --bind-to none --timeout 60 -- "$work/program" \
        >"$work/output" 2>&1 || { cat "$work/output" && exit 1; }
    cat "$work/output"
    [ "$(grep -c "$line" "$work/output")" = "$ranks" ]
}
