#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# memory_hook_test.c with the hook of llvm/prototype, LLVM 22's liboffload, our libomptarget and runtime, on a stand-in for
# CUDA's driver. Status 77: LLVM 22 (scripts/setup.sh --llvm 22) or the GPU toolchain (scripts/gpu-toolchain.sh) is not there,
# or LLVM has no device runtime.
#
#   memory-hook.sh SOURCE_DIR BUILD_DIR LLVM_VERSION STAND_IN
set -eu
# shellcheck source-path=SCRIPTDIR source=stand-in-driver.sh
. "$(dirname "$0")/stand-in-driver.sh"
later=$("$source/scripts/llvm-toolchain.sh" --llvm 22 --folder)
if [ ! -e "$later/include/offload/OffloadAPI.h" ]; then
    echo "skipped: LLVM 22 is not there (scripts/setup.sh --llvm 22)"
    exit 77
fi
"$later/bin/clang++" -std=c++17 -O1 -Wall -Wextra -Werror -I"$source/src" -I"$later/include/offload" \
    -c "$source/llvm/prototype/MemoryHook.cpp" -o "$work/hook.o"
# liboffload's header uses bool without its header.
# shellcheck disable=SC2086 # a list of options
"$build/bin/diompcc" -O1 $flags -include stdbool.h -I"$source/tests" -I"$later/include/offload" \
    "$source/tests/offload/memory_hook_test.c" "$work/hook.o" -Wl,--wrap=olMemAlloc,--wrap=olMemFree \
    "$later/lib/libLLVMOffload.so" -lstdc++ -Wl,-rpath,"$later/lib" -o "$work/program"
run_ranks 2 "memory of liboffload: ok"
run_ranks 2 "memory of liboffload: ok" DIOMP_NODE_SIZE=1
