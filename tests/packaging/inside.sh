#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs in a new Debian as root, for debian.sh: /packages has the packages, /examples the programs of the pages, each with
# what it must print on 4 ranks.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
fail() { echo "FAILED: $*" && exit 1; }
install() { apt-get install -y -o Dpkg::Use-Pty=0 "$@" >/tmp/apt.log 2>&1 || { tail -n 30 /tmp/apt.log && fail "apt-get install $*"; }; }
# prints NAME COMMAND...: the command prints what /examples/NAME.expected says, and nothing else.
prints() {
    timeout 120 "${@:2}" >/tmp/out 2>&1 || { cat /tmp/out && fail "${*:2}"; }
    diff "/examples/$1.expected" /tmp/out || fail "${*:2} prints something else"
    echo "-- $1: $(cat /tmp/out)"
}
listed() { find / -xdev \( -path /tmp -o -path /examples -o -path /packages \) -prune -o -print | sort; }

cd /examples
listed >/tmp/before
began=$EPOCHSECONDS
apt-get update -qq
install /packages/*.deb
installed=$EPOCHSECONDS
diompcc halo.c -o halo
prints halo diomp-run -n 4 ./halo
echo "-- from nothing to the twenty lines: 4 commands, $((EPOCHSECONDS - began)) s, of which $((installed - began)) s are apt-get's"

diompcc -fopenmp-targets=x86_64-pc-linux-gnu device.c -o device
prints device diomp-run -n 4 ./device

echo "-- a program without DiOMP on devices that a service of this host lends"
cat >remote.c <<'C'
#include <omp.h>
#include <stdio.h>
int main(void) {
    int here = 1;
#pragma omp target map(tofrom : here)
    here = omp_is_initial_device();
    printf("%d devices, %s\n", omp_get_num_devices(), here ? "not used" : "used");
}
C
echo "2 devices, used" >remote.expected
clang-19 -O2 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu remote.c -o remote
prints remote env DIOMP_LOCAL_DEVICES=off diomp-run --remote-devices localhost:2 ./remote

echo "-- calls in regions of remote devices, of services that diomp-run starts"
diompcc -fopenmp-targets=x86_64-pc-linux-gnu regions.c -o regions
prints regions env OMP_TARGET_OFFLOAD=MANDATORY DIOMP_LOCAL_DEVICES=off diomp-run -n 2 --remote-devices localhost:2 ./regions
echo "-- the same, of a host that has the package of the service only"
read -r lender </packages/lender
# shellcheck disable=SC2016 # of the rank's shell
prints regions env OMP_TARGET_OFFLOAD=MANDATORY DIOMP_LOCAL_DEVICES=off DIOMP_TOKEN_FILE=/packages/token LENDER="$lender" \
    diomp-run -n 2 sh -c 'DIOMP_REMOTE_DEVICES=$LENDER@$DIOMP_RANK*1 exec ./regions'

install gfortran
diompfc -O3 rows.f90 -o rows
prints rows diomp-run -n 4 ./rows

flang=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' 'diomp-flang-*' 2>/dev/null | sed -n 's/^ii *diomp-//p') || true
if [ -n "$flang" ]; then
    install "$flang" # only recommended
    export DIOMP_FC=/usr/bin/flang-new-${flang#flang-}
    [ -x "$DIOMP_FC" ] || fail "$flang has no $DIOMP_FC"
    diompfc -O3 rows.f90 -o rows_flang
    prints rows diomp-run -n 4 ./rows_flang
    cat >flang.f90 <<'F'
program flang
    use diomp
    use omp_lib
    logical :: on_host
    integer :: i, x(64)
    x = 1
    !$omp target parallel do map(tofrom: x)
    do i = 1, 64
        x(i) = x(i) + i
    end do
    !$omp target map(from: on_host)
    on_host = omp_is_initial_device()
    !$omp end target
    if (ompx_get_rank_num() == 0) print '(a, i0, l2)', "sum ", sum(x), on_host
end program
F
    echo "sum 2144 F" >flang.expected
    diompfc -fopenmp-targets=x86_64-pc-linux-gnu flang.f90 -o flang
    prints flang diomp-run -n 2 ./flang
    unset DIOMP_FC
else
    echo "-- no diomp-flang-* among the packages"
fi

if dpkg -s python3-diomp >/dev/null 2>&1; then
    prints program diomp-run -n 4 python3 program.py
    python3 -c 'import importlib.metadata, diomp; assert importlib.metadata.version("diomp") == diomp.__version__'
else
    echo "-- no python3-diomp among the packages"
fi

echo "-- OpenSHMEM"
cat >shmem.c <<'C'
#include <shmem.h>
#include <stdio.h>
int main(void) {
    shmem_init();
    static long from = -1;
    long me = shmem_my_pe();
    shmem_long_p(&from, me, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    if (me == 0)
        printf("from %ld\n", from);
    shmem_finalize();
}
C
echo "from 3" >shmem.expected
diompcc --shmem shmem.c -o shmem
prints shmem diomp-run -n 4 ./shmem

echo "-- CMake package and pkg-config"
install cmake make gcc g++ pkg-config
cmake -S /usr/share/doc/diomp-doc/examples -B made -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 >/tmp/cmake.log
cmake --build made >>/tmp/cmake.log || { cat /tmp/cmake.log && fail "the examples with CMake"; }
for program in hello halo halo_fortran histogram; do
    timeout 120 diomp-run -n 2 "made/$program" >/tmp/out 2>&1 || { cat /tmp/out && fail "$program"; }
done
# shellcheck disable=SC2046 # a list of words
cc -fopenmp halo.c -o plain $(pkg-config --cflags --libs diomp)
prints halo diomp-run -n 4 ./plain

echo "-- the tools, the service, manual pages, completion"
diomp-info --doctor >/tmp/out || { cat /tmp/out && fail "diomp-info --doctor"; }
[ "$(diomp-info --version | awk '{ print $NF }')" = "$(pkg-config --modversion diomp)" ] || fail "diomp-info --version"
diomp-deviced --help >/dev/null
diomp-trace --help >/dev/null
getent passwd diomp >/dev/null || fail "no user for the service"
unit=$(dpkg -L diomp-deviced | grep 'diomp-deviced.service$')
grep -q '^ExecStart=/usr/bin/diomp-deviced ' "$unit" || fail "another program in $unit"
for file in man/man1/diomp-run.1.gz man/man3/ompx_put.3.gz man/man7/diomp.7.gz man/man1/diompcc.1.gz \
    bash-completion/completions/diomp-run zsh/vendor-completions/_diomp fish/vendor_completions.d/diompcc.fish; do
    [ -s "/usr/share/$file" ] || fail "/usr/share/$file is not there"
done
echo token >/etc/diomp/token

mapfile -t files < <(dpkg-query -W -f='${Package} ${source:Package}\n' | awk '$2 == "diomp" { print $1 }' |
    xargs dpkg -L | sort -u | while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done)
python3 -B /packages/run_paths.py "${files[@]}" || fail "run paths"

# As many events as tests/offload/remote/remote_test.py expects; those of devices that are only listed are not counted.
echo "-- a tool sees the events of regions (OMPT), also where libomp has no file for development"
diompcc -fopenmp-targets=x86_64-pc-linux-gnu /packages/events.c -o events
apt-get purge -y libomp-19-dev >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && fail "apt-get purge libomp-19-dev"; }
[ ! -e /usr/lib/llvm-19/lib/libomp.so ] || fail "libomp.so is still there"
printf '%s\n' "26 data" "1 load" "4 submit" "12 target" >events.expected
prints events sh -c "diomp-run -n 1 ./events | cut -d' ' -f1 | grep '^[a-z]' | grep -v initialize | sort | uniq -c | sed 's/^ *//'"

echo "-- another version of LLVM"
if dpkg -s diomp-offload-22 >/dev/null 2>&1; then
    install clang-22 clang-tools-22 libomp-22-dev
    diompcc --llvm 22 -fopenmp-targets=x86_64-pc-linux-gnu device.c -o device_22
    prints device diomp-run -n 4 ./device_22
    diompcc --llvm 22 -O2 -fopenmp-targets=x86_64-pc-linux-gnu remote.c -o remote_22
    prints remote env DIOMP_LOCAL_DEVICES=off diomp-run --remote-devices localhost:2 ./remote_22
    ldd device_22 | grep -q 'libomptarget.so.22.1 => /usr/lib/[^/]*/diomp/' || { ldd device_22 && fail "another libomptarget"; }
else
    echo "-- no diomp-offload-22 among the packages"
fi

echo "-- purged"
cd /
mapfile -t ours < <(dpkg-query -W -f='${Package} ${source:Package}\n' | awk '$2 == "diomp" { print $1 }')
[ ${#ours[@]} -ge 6 ] || fail "only these were installed: ${ours[*]}"
for package in "${ours[@]}"; do dpkg -L "$package"; done | sort -u >/tmp/files
apt-get purge -y "${ours[@]}" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && fail "apt-get purge"; }
listed >/tmp/after
# What was not there before and belongs to none of the packages that are left: the packages' own files, and whatever has
# their name.
comm -13 /tmp/before /tmp/after >/tmp/new
{ comm -12 /tmp/new /tmp/files; grep -i diomp /tmp/new || true; } | sort -u | while IFS= read -r path; do
    dpkg -S "$path" >/dev/null 2>&1 || echo "$path"
done >/tmp/left
[ ! -s /tmp/left ] || { cat /tmp/left && fail "these files are left"; }
[ -s /tmp/files ] && grep -qx /usr/bin/diomp-run /tmp/files || fail "the list of the packages' files is not theirs"
echo "-- ${#ours[@]} packages with $(wc -l </tmp/files) files and folders: none is left"
