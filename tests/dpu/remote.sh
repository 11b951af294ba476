#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs of this machine use the devices of a service for 64-bit Arm, which runs under an emulator: five kernels, whose
# results equal the host's bit for bit, by one program with two devices, and by two ranks with one each, which exchange halos
# in target regions. Status 77: there is no build for this machine.
#   remote.sh SOURCE_DIR AARCH64_BUILD_DIR NATIVE_BUILD_DIR EMULATOR...
set -u
source=${1:?} service=${2:?}/bin/diomp-deviced native=${3:?}
shift 3
[ -x "$native/bin/diompcc" ] && [ -e "$native/lib/diomp/libomptarget.so" ] || {
    echo "skipped: no build for this machine in $native"
    exit 77
}
work=$(mktemp -d)
trap 'kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT
pid=
cd "$work" || exit 1
failures=0
wrong() {
    echo "FAILED: $1"
    sed 's/^/    | /' out
    failures=$((failures + 1))
}

apps=$source/apps
# compile PARTS PROGRAM. Contraction is up to the processor; without it all round alike.
compile() {
    "$native/bin/diompcc" --dpu -O2 -ffp-contract=off -I"$apps" "$apps"/dpu/{dpu_main,"$1",device_ranges,heat,ep,lbm,penta,mriq}.c \
        "$apps"/common/{devices,options}.c -lm -o "$2" >out 2>&1 || wrong "$1 does not compile"
}
compile parts_target kernels
compile parts_region exchanging

export DIOMP_TOKEN
DIOMP_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
mkfifo port
"$@" "$service" --port 0 --print-port --memory 1G --devices 2 >port &
pid=$!
read -r number <port
export DIOMP_LOCAL_DEVICES=off OMP_TARGET_OFFLOAD=MANDATORY

# run WHAT COMMAND...
run() {
    what=$1
    shift
    timeout 100 "$@" all --grid 24 --steps 4 --pairs 18 --samples 32 >out 2>&1 || wrong "$what: the kernels do not run"
    for kernel in heat ep lbm penta mriq; do
        grep -q "check *passed: $kernel equals the host's result bit for bit" out || wrong "$what: $kernel"
    done
    cat out
}
export DIOMP_REMOTE_DEVICES=localhost:$number
run "two devices of one program" ./kernels
run "a device of each of two ranks" "$native/bin/diomp-run" -n 2 --bind-to none --timeout 90 -- \
    sh -c 'DIOMP_REMOTE_DEVICES=$DIOMP_REMOTE_DEVICES@$DIOMP_RANK*1 exec ./exchanging "$@"' exchanging

[ $failures = 0 ] && echo "dpu remote: ok"
exit $failures
