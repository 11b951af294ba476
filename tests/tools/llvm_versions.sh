#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Versions of LLVM side by side (docs/llvm.md): every one that this build has compiles and runs a region, and versions that
# do not fit together are errors. Status 77: the build has no libomptarget.
#   llvm_versions.sh BUILD_DIR
set -u
build=${1:?}
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
folder=$build/lib/diomp
[ -e "$folder/libomptarget.so" ] || { echo "skipped: this build has no libomptarget" && exit 77; }
versions=$(cd "$folder" && for each in llvm-*/libomptarget.so; do [ ! -e "$each" ] || echo "$each" | tr -dc '0-9'; echo; done)
unset DIOMP_CC DIOMP_CXX DIOMP_FC LD_LIBRARY_PATH
failures=0
wrong() {
    echo "FAILED: $1"
    [ ! -s messages ] || sed 's/^/    /' messages
    failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: what is printed matches.
expect() {
    local status=$1 pattern=$2
    shift 2
    "$@" >messages 2>&1
    local got=$?
    [ "$got" = "$status" ] || wrong "status $got instead of $status: $*"
    [ -z "$pattern" ] || grep -Eq -- "$pattern" messages || wrong "not '$pattern': $*"
}

cat >program.c <<'END'
#include <diomp.h>
#include <omp.h>
#include <stdio.h>
#pragma omp declare target
int scale = 3;
#pragma omp end declare target
int main(void) {
    int rank = ompx_get_rank_num(), right = (rank + 1) % ompx_get_num_ranks(), ran_on_host = 1;
    double sent[64], got[64] = {0};
    for (int i = 0; i < 64; ++i)
        sent[i] = rank + i;
#pragma omp target enter data map(to : sent, got)
    ompx_barrier();
    int status = ompx_target_put(right, got, 0, sent, 0, sizeof got);
    ompx_barrier();
#pragma omp target map(tofrom : ran_on_host)
    {
        ran_on_host = omp_is_initial_device();
        for (int i = 0; i < 64; ++i)
            got[i] *= scale;
    }
#pragma omp target exit data map(from : got) map(delete : sent)
    int left = (rank + ompx_get_num_ranks() - 1) % ompx_get_num_ranks(), wrong = 0;
    for (int i = 0; i < 64; ++i)
        wrong += got[i] != 3 * (left + i);
    printf("status %d, %d wrong, on the host: %d\n", status, wrong, ran_on_host);
    return status != 0 || wrong != 0 || ran_on_host;
}
END
targets=-fopenmp-targets=$(uname -m)-pc-linux-gnu
for version in $versions; do
    expect 0 '' "$build/bin/diompcc" --llvm "$version" -O1 $targets program.c -o "of_$version"
    [ -x "of_$version" ] || continue
    for ranks in 1 2 3; do
        expect 0 'status 0, 0 wrong, on the host: 0' "$build/bin/diomp-run" -n $ranks --bind-to none -- "./of_$version"
        [ "$(grep -c 'status 0' messages)" = $ranks ] || wrong "not every one of $ranks ranks with LLVM $version"
    done
    expect 0 "$folder/libomptarget.so.$version" ldd "of_$version"
    # The same on devices of a service, without DiOMP.
    printf '#include <omp.h>\nint main(void) { int x = 0;\n#pragma omp target map(tofrom : x)\nx = 1 - omp_is_initial_device();\nreturn !(x == 1 && omp_get_num_devices() == 3); }\n' >plain.c
    expect 0 '' "$build/bin/diompcc" --llvm "$version" $targets plain.c -o "plain_$version"
    DIOMP_LOCAL_DEVICES=off expect 0 '' "$build/bin/diomp-run" -n 1 --bind-to none --remote-devices localhost:3 -- "./plain_$version"
    # What a plain clang makes, whose image names no folder where its libomptarget is.
    clang=$("$scripts/llvm-toolchain.sh" --llvm "$version" --folder)/bin/clang
    expect 0 '' env LIBRARY_PATH="$folder/llvm-$version" "$clang" -fopenmp $targets plain.c -o "bare_$version"
    DIOMP_LOCAL_DEVICES=off expect 0 '' "$build/bin/diomp-run" -n 1 --bind-to none --remote-devices localhost:3 -- "./bare_$version"
    expect 0 "libomptarget of LLVM .*$version[.]" "$build/bin/diomp-info"
done

# Two at once, and programs that get the other one: the names are of one length.
if [ -x of_19 ] && [ -x of_22 ]; then
    expect 1 "two versions of libomptarget are loaded: .*libomptarget.so.22.1 and .*libomptarget.so.19.1 .LLVM 19" \
        env LD_PRELOAD="$folder/libomptarget.so.22.1" ./of_19
    expect 1 "two versions of libomptarget are loaded: .*libomptarget.so.19.1 and .*libomptarget.so.22.1 .LLVM 22" \
        env LD_PRELOAD="$folder/libomptarget.so.19.1" ./of_22
    sed 's/libomptarget[.]so[.]19[.]1/libomptarget.so.22.1/' of_19 >old_on_new
    sed 's/libomptarget[.]so[.]22[.]1/libomptarget.so.19.1/' of_22 >new_on_old
    chmod +x old_on_new new_on_old
    expect 0 'status 0, 0 wrong, on the host: 0' ./old_on_new
    expect 1 "were compiled by .*clang version 22[.].*, and DiOMP's libomptarget is that of LLVM 19 .remedy: compile" ./new_on_old
    expect 2 "needs libomptarget.so.19.1, which is not that of the LLVM that compiled its target regions" \
        "$build/bin/diomp-run" -n 1 --remote-devices localhost:1 -- ./new_on_old
fi

# Compilers that do not fit, by a stand-in that only says what it is.
printf '#!/bin/sh\ncase $1 in --version) echo "clang version $MAJOR.1.0" ;; -print-resource-dir) echo "$PWD/lib/clang/x" ;; *) printf "<%%s>\\n" "$@" ;; esac\n' >compiler
chmod +x compiler
mkdir -p lib/clang/x
expect 1 'needs a version' "$build/bin/diompcc" --llvm
expect 1 'needs a version' "$build/bin/diompcc" --llvm new program.c
expect 1 'clang 7 is not installed .scripts/setup.sh --llvm 7' "$build/bin/diompcc" --llvm 7 program.c
export DIOMP_CC=$PWD/compiler
MAJOR=7 expect 1 "the compiler is clang 7, and DiOMP has libomptarget of LLVM $(echo $versions | sed 's/ /, /g') here" \
    "$build/bin/diompcc" $targets program.c
MAJOR=7 expect 0 '<program.c>' "$build/bin/diompcc" program.c
! grep -q "$folder" messages || wrong "clang 7 gets our libomptarget"
MAJOR=7 expect 0 '<-c>' "$build/bin/diompcc" $targets -c program.c
for version in $versions; do
    MAJOR=$version expect 1 "LLVM $version has no device runtime here .$PWD/lib/.*" "$build/bin/diompcc" --offload-arch=sm_90 program.c
    MAJOR=$version expect 1 "LLVM $version has no device runtime here" "$build/bin/diompcc" --offload-arch=gfx90a program.c
    MAJOR=$version expect 0 "<-L$folder/llvm-$version>" "$build/bin/diompcc" $targets program.c
done
# flang's module is that of its version; its tools and its libomp come from the folder that has them.
if [ -x "$build/bin/diompfc" ]; then
    sed 's/clang version/flang version/' compiler >fortran-compiler
    chmod +x fortran-compiler
    export DIOMP_FC=$PWD/fortran-compiler
    MAJOR=7 expect 1 "the compiler is flang 7, for which DiOMP has no Fortran module here; build DiOMP with" "$build/bin/diompfc" program.f90
    for version in $versions; do
        [ -e "$folder/flang-$version/diomp.mod" ] || continue
        MAJOR=$version expect 0 "<-I$folder/flang-$version>" "$build/bin/diompfc" program.f90
        for word in "-L$folder/llvm-$version" "-L$folder/flang-$version" "-Wl,-rpath" "-Wl,--device-linker=x86_64-pc-linux-gnu=$folder/libdiomp-flang-regions.a"; do
            MAJOR=$version expect 0 "<$word>" "$build/bin/diompfc" -fopenmp-targets=x86_64-pc-linux-gnu program.f90
        done
        ! grep -qE -- '-Xlinker|-fplugin' messages || wrong "flang $version gets options of clang"
    done
fi
[ "$failures" = 0 ] && echo "versions of LLVM: ok (" $versions ")"
exit "$((failures > 0))"
