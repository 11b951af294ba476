#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs of other tests on LLVM's plugin for CUDA and a stand-in for its driver, which executes their regions on the processor:
# with their images' headers changed, they are taken for NVIDIA's.
#
#   cuda-regions.sh SOURCE_DIR BUILD_DIR STAND_IN
set -eu
source=$1
build=$2
images=
wanted=0
wrapper=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/driver"
cp "$3" "$work/driver/libcuda.so.1"
ln -s libcuda.so.1 "$work/driver/libcuda.so" # the name that LLVM's packages look for

fail() {
    cat "$work/output"
    echo "failed: $*"
    exit 1
}
# run RANKS DEVICES PROGRAM [NAME=VALUE]... [-- ARGUMENT...]: on a node with so many devices.
run() {
    options=
    mebibytes=1024
    start "$@"
    [ "$(grep -c "^launches: " "$work/output")" = "$ranks" ] || fail "$program: not all ranks used the driver"
}
# lent RANKS DEVICES PROGRAM [NAME=VALUE]... [-- ARGUMENT...]: a service on this host has the devices.
lent() {
    options="--remote-devices localhost:cuda:$2"
    mebibytes=${gpu_mebibytes:-8192}
    ranks=$1
    devices=$2
    program=$3
    shift 3
    start "$ranks" "$devices" "$program" DIOMP_LOCAL_DEVICES=off "$@"
}
# mixed RANKS SERVICES PROGRAM [NAME=VALUE]... [-- ARGUMENT...]: a program with two images; services on this host have devices.
mixed() {
    options="--remote-devices $2"
    mebibytes=8192
    images="--from 1"
    ranks=$1
    program=$3
    shift 3
    start "$ranks" 2 "$program" "$@"
    images=
}
start() {
    ranks=$1
    devices=$2
    program=$3
    shift 3
    settings=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    [ $# -eq 0 ] || shift
    for each in "$program" liboffload_variables_library.so; do
        [ -e "$work/$each" ] && continue
        of="$build/tests/offload/$each"
        [ -e "$of" ] || of="$build/bin/$each"
        cp "$of" "$work/$each"
        # shellcheck disable=SC2086 # an option and its value
        "$source/tests/offload/image_for_stand_in.py" $images "$work/$each"
    done
    # shellcheck disable=SC2086 # lists
    env FAKE_CUDA_LOADS=any FAKE_CUDA_COMPLAINTS=tell FAKE_CUDA_SHOW_LAUNCHES=1 FAKE_CUDA_MEBIBYTES="$mebibytes" \
        FAKE_CUDA_DEVICES="$devices" LD_LIBRARY_PATH="$work/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        OMP_TARGET_OFFLOAD=MANDATORY DIOMP_ERRORS=return DIOMP_LOG=error DIOMP_DEVICE_SEGMENT_SIZE=64M $settings \
        "$build/bin/diomp-run" -n "$ranks" --bind-to none --timeout 60 $options -- $wrapper "$work/$program" "$@" \
        >"$work/output" 2>&1 && code=0 || code=$?
    [ "$code" = "$wanted" ] || fail "$program on $ranks ranks with$settings: status $code"
    ! grep -q "^fake_cuda:" "$work/output" || fail "$program: the driver was used wrongly"
}
# Regions of plans are launched as graphs, unless they are not wanted.
graphs() {
    grep -q "^launches: $1 graphs, $2 regions\$" "$work/output" || fail "wanted $1 graphs and $2 regions"
}

own="DIOMP_DEVICES_PER_RANK=1"
run 1 1 offload_plan $own
graphs '[1-9][0-9]*' '[1-9][0-9]*'
run 2 2 offload_plan $own
run 1 1 offload_plan_cpp $own
run 1 1 offload_plan_sequences $own -- 100
graphs '[1-9][0-9]*' '[1-9][0-9]*'
run 1 1 offload_plan_sequences $own DIOMP_PLAN_GRAPHS=off -- 30
graphs 0 '[1-9][0-9]*'
# Each function for graphs is refused: the regions are launched one after the other.
for refused in cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags; do
    run 1 1 offload_plan_sequences $own FAKE_CUDA_FAIL=$refused=999 -- 10
    graphs 0 '[1-9][0-9]*'
done
run 1 2 offload_plain
run 1 2 offload_threads
run 2 4 offload_threads $own
run 2 1 offload_target
run 2 1 offload_misuse
run 2 1 offload_compat
run 2 1 offload_freed DIOMP_DEVICE_SEGMENT_SIZE=256M
run 2 1 offload_freed DIOMP_DEVICE_SEGMENT_SIZE=256M FAKE_CUDA_PATIENCE=50
for _ in 1 2 3 4; do # a rank ends while the other copies one of its variables
    run 2 1 offload_variables -- "$work/liboffload_variables_library.so"
done
two="DIOMP_DEVICES_PER_RANK=2"
run 2 4 offload_two_devices $two
run 2 4 offload_pragma $two
run 2 4 offload_endpoints $two
# Calls in regions, in the code of GPUs: loads and stores, and requests.
run 2 2 offload_device_calls_as_gpu $own
run 2 2 offload_device_rings_as_gpu $own
run 2 2 offload_device_rings_as_gpu $own DIOMP_DEVICE_CALLS=ring
# GPUs with segments of different sizes are loaded and stored, too: without requests.
cat >"$work/sizes" <<'END'
#!/bin/sh
export DIOMP_DEVICE_SEGMENT_SIZE=$((64 + 32 * (DIOMP_RANK * 2 % 3)))M
exec "$@"
END
chmod +x "$work/sizes"
wrapper=$work/sizes
run 3 3 offload_device_calls_as_gpu $own DIOMP_DEVICE_CALLS=direct
run 2 2 offload_device_rings_as_gpu $own
wrapper=

# GPUs of services, in the address space.
large="DIOMP_DEVICE_SEGMENT_SIZE=256M"
lent 2 2 offload_remote_space TEST_GPUS=GG DIOMP_DEVICE_SEGMENT_SIZE=auto
lent 3 3 offload_remote_space TEST_GPUS=GGG $large
lent 3 3 offload_remote_space TEST_GPUS=GGG $large DIOMP_NODE_SIZE=1
lent 3 3 offload_remote_collectives $large
lent 2 2 offload_target
lent 2 2 offload_freed DIOMP_DEVICE_SEGMENT_SIZE=auto
lent 2 2 offload_compat
lent 2 2 offload_variables -- "$work/liboffload_variables_library.so"
lent 2 2 offload_threads
lent 1 1 offload_plan
lent 2 4 offload_two_devices $two
lent 2 4 offload_pragma $two
lent 2 4 offload_endpoints $two
# More than a segment holds is an error, since its address says nothing about whose memory it is. Between segments the sessions
# transfer, not the ranks, and make the collective calls: there they are the first of their group.
lent 2 2 offload_service_gpu DIOMP_STATS=summary DIOMP_LOG=coll:debug
for each in "ompx_target_put_nb  *conduit" "ompx_target_get_rect  *conduit" "ompx_allreduce(count=1,.*from round 1 on"; do
    grep -q "$each" "$work/output" || fail "not by the sessions: $each"
done
lent 3 3 offload_service_gpu DIOMP_NODE_SIZE=1
lent 3 3 offload_service_gpu DIOMP_NETWORK=ucx
# A segment that does not fit leaves all memory to the GPU's own allocator, also where one half of it fits.
for size in 1000M 1100M 1900M 3G; do
    gpu_mebibytes=1024
    lent 1 1 offload_large_map DIOMP_DEVICE_SEGMENT_SIZE=$size -- 400
    gpu_mebibytes=
done
# LLVM's plugin in the service keeps the names of kernels.
lent 1 1 offload_large_map LIBOMPTARGET_INFO=16
[ "$(grep -ac "Launching kernel" "$work/output")" -ge 2 ] || fail "no launches"
[ "$(grep -ac "Launching kernel" "$work/output")" = \
    "$(grep -c "Launching kernel __omp_offloading_[0-9a-f_]*main_l[0-9]* with" "$work/output")" ] || fail "names of kernels"
# Calls in their regions, from session to session: in one node, apart, and in pairs.
for apart in "" DIOMP_NODE_SIZE=1 DIOMP_NETWORK=ucx; do
    lent 2 2 offload_device_calls_as_gpu $apart
    lent 2 2 offload_device_rings_as_gpu $apart
    lent 2 2 offload_device_calls_as_gpu $apart -- together
done
lent 4 4 offload_device_calls_as_gpu DIOMP_NODE_SIZE=2
for apart in "" DIOMP_NODE_SIZE=1; do
    lent 2 4 offload_device_calls_each_as_gpu $two $apart
done
grep -q "calls on 2 devices: ok" "$work/output" || fail "not on both devices"
lent 3 3 offload_device_rings_as_gpu DIOMP_ENCRYPT=all DIOMP_NODE_SIZE=1
lent 2 2 offload_device_calls_as_gpu DIOMP_TIMEOUT=1 -- timeout

# A GPU that is lost, or makes no call: all ranks get errors.
wanted=3
for apart in "" DIOMP_NODE_SIZE=1; do
    lent 3 3 offload_remote_collectives_lost $apart DIOMP_TIMEOUT=20 -- lost
    lent 3 3 offload_remote_collectives_lost $apart DIOMP_TIMEOUT=2 -- stopped
    lent 3 3 offload_remote_collectives_lost $apart DIOMP_TIMEOUT=2 -- absent
done
wanted=0

# Host devices, GPUs, remote processors and GPUs of services in one job.
remote="DIOMP_LOCAL_DEVICES=off"
processor="localhost:1"
gpu="localhost:cuda:1"
mixed 2 "$processor,$gpu" offload_remote_space_two_images $remote $large TEST_GPUS=CG
mixed 3 "$gpu,$processor,$gpu" offload_remote_space_two_images $remote $large TEST_GPUS=GCG DIOMP_NODE_SIZE=1
mixed 2 "$gpu,$processor" offload_mixed_devices_two_images $remote -- 1
mixed 2 "$gpu,$processor" offload_mixed_devices_two_images $own -- 7

# Applications, with the results of host devices.
checksum() {
    sed -n 's/^checksum *//p' "$1"
}
# same PROGRAM RANKS DEVICES [ARGUMENT...]
same() {
    program=$1
    ranks=$2
    devices=$3
    shift 3
    run "$ranks" "$devices" "$program" $own -- "$@"
    OMP_NUM_THREADS=2 "$build/bin/diomp-run" -n "$ranks" --bind-to none --timeout 60 -- "$build/bin/$program" "$@" >"$work/expected" 2>&1
    [ -n "$(checksum "$work/expected")" ] && [ "$(checksum "$work/output")" = "$(checksum "$work/expected")" ] ||
        fail "$program: wanted $(cat "$work/expected")"
}
if [ -e "$build/bin/minimod-target" ]; then
    same minimod-target 2 2 --grid 40 --steps 20
    same minimod-devices 1 2 --grid 40 --steps 20
    same matmul-target 2 1 --n 200
    # These compare with the host's results themselves.
    run 1 2 dpu-target -- all --grid 24 --steps 3 --pairs 16
    run 2 2 cg-target $own -- --size 24
fi
echo "regions on the stand-in: ok"
