#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# memory_hook_test.c with the hook of llvm/prototype, LLVM 22's liboffload, our libomptarget and runtime, on a stand-in for
# CUDA's driver. Status 77: LLVM 22 (scripts/setup.sh --llvm 22) or the GPU toolchain (scripts/gpu-toolchain.sh) is not there,
# or LLVM has no device runtime.
#
#   memory-hook.sh SOURCE_DIR BUILD_DIR LLVM_VERSION STAND_IN
set -eu
source=$1
build=$2
version=$3
stand_in=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
later=$("$source/scripts/llvm-toolchain.sh" --llvm 22 --folder)
if [ ! -e "$later/include/offload/OffloadAPI.h" ]; then
    echo "skipped: LLVM 22 is not there (scripts/setup.sh --llvm 22)"
    exit 77
fi
"$source/scripts/gpu-toolchain.sh" --flags --llvm "$version" sm_80 >"$work/flags" 2>"$work/why" || {
    echo "skipped: $(cat "$work/why")"
    exit 77
}
"$later/bin/clang++" -std=c++17 -O1 -Wall -Wextra -Werror -I"$source/src" -I"$later/include/offload" \
    -c "$source/llvm/prototype/MemoryHook.cpp" -o "$work/hook.o"
# liboffload's header uses bool without its header.
# shellcheck disable=SC2046 # a list of options
"$build/bin/diompcc" -O1 $(cat "$work/flags") -include stdbool.h -I"$source/tests" -I"$later/include/offload" \
    "$source/tests/offload/memory_hook_test.c" "$work/hook.o" -Wl,--wrap=olMemAlloc,--wrap=olMemFree \
    "$later/lib/libLLVMOffload.so" -lstdc++ -Wl,-rpath,"$later/lib" -o "$work/program"
mkdir "$work/driver"
cp "$stand_in" "$work/driver/libcuda.so.1"
ln -s libcuda.so.1 "$work/driver/libcuda.so" # the name that LLVM's packages look for
# run [NAME=VALUE]...
run() {
    env "$@" FAKE_CUDA_MEBIBYTES=1024 LD_LIBRARY_PATH="$work/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        OMP_TARGET_OFFLOAD=MANDATORY "$build/bin/diomp-run" -n 2 --bind-to none --timeout 60 -- "$work/program" \
        >"$work/output" 2>&1 || { cat "$work/output" && exit 1; }
    cat "$work/output"
    [ "$(grep -c "memory of liboffload: ok" "$work/output")" = 2 ]
}
run
run DIOMP_NODE_SIZE=1
