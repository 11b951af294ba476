#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A program by diompcc --dpu: has it an image for 64-bit Arm, does that image run there (under an emulator), and does the
# program run here as usual? Status 77: libraries or linker for 64-bit Arm are not here.
#   fat_binary.sh SOURCE_DIR BUILD_DIR
set -u
source=${1:?} build=${2:?}
bin=$build/bin
tests=$source/tests/dpu
triple=aarch64-unknown-linux-gnu
unset DIOMP_CC DIOMP_CXX DIOMP_DPU_LD LIBRARY_PATH
sysroot=$("$source/scripts/dpu-sysroot.sh" --folder)
[ -e "$sysroot/usr/lib/llvm-19/lib/libomp.so" ] || {
    echo "skipped: no libraries for aarch64 in $sysroot (scripts/dpu-sysroot.sh)"
    exit 77
}
command -v aarch64-linux-gnu-ld >/dev/null || { echo "skipped: no aarch64-linux-gnu-ld (binutils-aarch64-linux-gnu)" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

wrong() {
    echo "FAILED: $1"
    sed 's/^/    | /' out
    failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: the command ends with STATUS and prints PATTERN on some line.
expect() {
    local status=$1 pattern=$2
    shift 2
    "$@" >out 2>&1
    local got=$?
    [ "$got" = "$status" ] || wrong "status $got instead of $status: $*"
    grep -qE -e "$pattern" out || wrong "no '$pattern': $*"
}
images() { llvm-objdump-19 --offloading "$1" | awk '$1 == "triple" { print $2 }' | sort | tr '\n' ' '; }
# compile PROGRAM OPTION...
compile() {
    local program=$1
    shift
    "$bin/diompcc" --dpu "$@" -O2 -c "$tests/regions.c" -o c.o &&
        "$bin/diompcxx" --dpu "$@" -O2 -std=c++20 -c "$tests/regions_cpp.cpp" -o cpp.o &&
        "$bin/diompcxx" --dpu "$@" c.o cpp.o -lm -o "$program"
}

echo "-- for DPUs alone"
expect 0 '^$' eval 'compile alone && echo'
[ "$(images alone)" = "$triple " ] || wrong "images: $(images alone)"
expect 0 '^regions: ok on the host' ./alone

echo "-- for DPUs and host devices, together with flags for the host's processor"
expect 0 '^$' eval 'compile both -fopenmp-targets=x86_64-pc-linux-gnu -march=native && echo'
[ "$(images both)" = "$triple x86_64-pc-linux-gnu " ] || wrong "images: $(images both)"
expect 0 '^regions: ok on a device' env OMP_TARGET_OFFLOAD=MANDATORY ./both device
expect 0 '^regions: ok on a device' "$bin/diomp-run" -n 2 --bind-to none ./both device
# For the processor of a DPU, and named twice.
expect 0 '^$' eval 'compile a72 -fopenmp-targets=$triple -Xopenmp-target=$triple -mcpu=cortex-a72 && echo'
[ "$(images a72)" = "$triple " ] || wrong "images: $(images a72)"

echo "-- the image"
clang-offload-packager-19 both "--image=file=image,triple=$triple,kind=openmp" >out 2>&1 || wrong "no image to take out"
expect 0 'Machine: +AArch64' readelf -h image
readelf -dW image >out
for library in libomptarget libdiomp libLLVM; do
    ! grep -q "NEEDED.*$library" out || wrong "the image needs $library"
done
! grep -qE 'RUNPATH|RPATH' out || wrong "the image has a run path of the host"
# The program looks for its regions in the image by these names.
names() { llvm-nm-19 "$@" | awk '/__omp_offloading_.*_l[0-9]+$/ && !/[.]offloading/ { print $NF }' | sort -u; }
names -D --defined-only image >device-names
nm both | sed -n 's/.*[.]offloading[.]entry[.]\(__omp_offloading_.*\)/\1/p' | sort -u >host-names
[ "$(wc -l <device-names)" = 3 ] || { cp device-names out && wrong "not three regions in the image"; }
diff host-names device-names >out || wrong "host and image name regions differently"
if command -v qemu-aarch64-static >/dev/null; then
    expect 0 '^$' eval 'clang-19 --target=aarch64-linux-gnu "--sysroot=$sysroot" -O2 "$tests/call_region.c" -o call_region \
        "--ld-path=$(command -v aarch64-linux-gnu-ld)" && echo'
    expect 0 '^call_region: ok' env OMP_NUM_THREADS=3 \
        qemu-aarch64-static -L "$sysroot" ./call_region ./image "$(grep take_roots device-names)"
else
    echo "without running it: no qemu-aarch64-static (qemu-user-static)"
fi

echo "-- calls of the runtime in regions"
cat >speaks.c <<'END'
#include <diomp.h>
#include <stdint.h>
static uint64_t arrived;
#pragma omp declare target to(arrived)
int main(void) {
    uint64_t value = 1;
#pragma omp target map(to : value)
    ompx_put_signal(0, &arrived, &value, sizeof value, 0, 1, OMPX_SIGNAL_SET);
    return 0;
}
END
expect 0 '^$' eval '"$bin/diompcc" --dpu -O2 speaks.c -o speaks && echo'
clang-offload-packager-19 speaks "--image=file=speaks-image,triple=$triple,kind=openmp" >out 2>&1 || wrong "no image to take out"
expect 0 'Shared library: .libdiomp.so.1.' readelf -d speaks-image
expect 0 ' ompx_put_signal@DIOMP_1' readelf -W --dyn-syms speaks-image

echo "-- libraries that are not there for the device"
echo 'int helper(int x) { return x + 1; }' >helper.c
cat >calls.c <<'END'
int helper(int);
int main(void) {
    int x = 1;
#ifdef ON_DEVICE
#pragma omp target map(tofrom : x)
#else
#pragma omp target map(tofrom : x)
    x *= 1;
#endif
    x = helper(x);
    return x != 2;
}
END
clang-19 -shared -fPIC helper.c -o libhelper.so && clang-19 -c helper.c && ar rc libstatic.a helper.o
for library in '-L. -lhelper' ./libhelper.so ./libstatic.a '-Wl,--whole-archive ./libstatic.a -Wl,--no-whole-archive'; do
    # shellcheck disable=SC2086 # a list of words
    expect 0 '^$' eval "'$bin/diompcc' --dpu calls.c $library -Wl,-rpath,. -o calls && ./calls && echo"
done
expect 1 "undefined reference to .helper'" "$bin/diompcc" --dpu -DON_DEVICE calls.c -L. -lhelper -o calls
grep -q '^dpu-ld: .* left out:.* -lhelper' out || wrong "what was left out is not named"

echo "-- what is missing has a name"
expect 1 'diompcc: .*/nowhere.*scripts/dpu-sysroot\.sh' env DIOMP_DPU_SYSROOT=/nowhere "$bin/diompcc" --dpu calls.c
expect 1 'diompcc: .*no-such-ld is not installed' env DIOMP_DPU_LD=no-such-ld "$bin/diompcc" --dpu calls.c
expect 1 'diompcc: --dpu needs clang 19' env DIOMP_CC=gcc "$bin/diompcc" --dpu calls.c
expect 0 '^$' eval 'DIOMP_DPU_SYSROOT=/nowhere "$bin/diompcc" --dpu -c calls.c && echo' # compiling needs neither
expect 0 "^-fopenmp -fsigned-char -fopenmp-targets=x,$triple -I" "$bin/diompcc" --showme:compile --dpu -fopenmp-targets=x
expect 0 "-Xoffload-linker-$triple --sysroot=" "$bin/diompcc" --dpu --showme:link

[ "$failures" = 0 ] && echo "fat_binary: ok"
exit "$failures"
