#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs of this machine use the devices of a service for 64-bit Arm, which runs under an emulator: five kernels, whose
# results equal the host's bit for bit. Status 77: there is no build for this machine.
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
# Contraction is up to the processor; without it all round alike.
"$native/bin/diompcc" --dpu -O2 -ffp-contract=off -I"$apps" "$apps"/dpu/{dpu_main,parts_target,device_ranges,heat,ep,lbm,penta,mriq}.c \
    "$apps"/common/{devices,options}.c -lm -o kernels >out 2>&1 || wrong "the kernels do not compile"

export DIOMP_TOKEN
DIOMP_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
mkfifo port
"$@" "$service" --port 0 --print-port --memory 1G --devices 2 >port &
pid=$!
read -r number <port
export DIOMP_REMOTE_DEVICES=localhost:$number DIOMP_LOCAL_DEVICES=off OMP_TARGET_OFFLOAD=MANDATORY
timeout 100 ./kernels all --grid 24 --steps 4 --pairs 18 --samples 32 >out 2>&1 || wrong "the kernels do not run"
for kernel in heat ep lbm penta mriq; do
    grep -q "check *passed: $kernel equals the host's result bit for bit" out || wrong "$kernel"
done
cat out

[ $failures = 0 ] && echo "dpu remote: ok"
exit $failures
