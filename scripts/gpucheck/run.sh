#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: the run, from inside the bundle. Needs a shell, awk and timeout (a busybox will do).
# Every test has a time limit of its own, and none stops the others. GPU_CHECK_ONLY=PATTERN runs those whose names it matches.
# shellcheck disable=SC2046,SC2048,SC2086 # lists of words
set -u
bundle=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-.}
mkdir -p "$out"
text=$out/gpu-check.txt
json=$out/gpu-check.json
work=$(mktemp -d)
trap 'stop_sharing; rm -rf "$work"' EXIT

now() { cut -d ' ' -f 1 /proc/uptime; }
since() { awk "BEGIN { printf \"%.2f\", $(now) - $1 }"; }
began=$(now)
allowed=${GPU_CHECK_SECONDS:-540}

say() { printf '%s\n' "$*" | tee -a "$text"; }
value_of() { sed -n "s/^$1 //p" "$bundle/about"; }
no=0
passed=0
failed=0
skipped=0
: >"$text"
: >"$work/tests"
: >"$work/facts"

# fact NAME VALUE...: into both reports.
fact() {
    name=$1
    shift
    [ -n "$*" ] || return 0
    say "$(printf '%-10s %s' "$name" "$*")"
    printf '%s\t%s\n' "$name" "$*" >>"$work/facts"
}

# The folder with the driver's library: where the loader or the environment says, or where containers have it.
find_driver() {
    for folder in $(ldconfig -p 2>/dev/null | sed -n 's|.*libcuda\.so\.1 (libc6,x86-64[^)]*) => \(.*\)/[^/]*$|\1|p') \
        $(printf '%s' "${LD_LIBRARY_PATH:-}" | tr ':' ' ') /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu \
        /lib/x86_64-linux-gnu /usr/lib64 /usr/lib /run/opengl-driver/lib /usr/lib/wsl/lib; do
        [ ! -e "$folder/libcuda.so.1" ] || { echo "$folder" && return; }
    done
}

# Only the driver's own libraries are taken from that folder: beside them may lie a system's, which are not wanted.
link_driver() {
    mkdir "$work/driver"
    for library in "$1"/libcuda* "$1"/libnvidia-*; do
        [ ! -e "$library" ] || ln -s "$library" "$work/driver/"
    done
}

# Programs start with the machine's glibc if that is new enough, else with the bundle's, through its loader.
choose_libc() {
    here=$( (ldd --version || getconf GNU_LIBC_VERSION) 2>/dev/null | sed -n '1s/.* \([0-9]*\.[0-9]*\)[^ ]*$/\1/p')
    whose=machine
    loader=
    libraries=$bundle/lib/diomp:$bundle/lib:$work/driver
    if [ "${GPU_CHECK_LIBC:-}" = bundle ] || [ ! -e /lib64/ld-linux-x86-64.so.2 ] ||
        ! awk "BEGIN { split(\"${here:-0.0}\", a, \".\"); split(\"$(value_of glibc)\", b, \".\");
                       exit !(a[1] > b[1] || (a[1] == b[1] && a[2] + 0 >= b[2] + 0)) }"; then
        whose=bundle
        loader=$bundle/libc/ld-linux-x86-64.so.2
    fi
    fact glibc "${here:-none} here, $(value_of glibc) in the bundle: programs start with the $whose's"
}

# record NAME OUTCOME SECONDS REASON: from $work/log into both reports.
record() {
    case $2 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
    esac
    say "$(printf '%-26s %-8s %7s s  %s' "$1" "$2" "$3" "$4")"
    case $2:$1 in
    failed:*) tail -n 20 "$work/log" | sed 's/^/    | /' | tee -a "$text" ;;
    passed:info.*) sed 's/^/    | /' "$work/log" | tee -a "$text" ;;
    passed:figures.* | passed:backend.*)
        grep -E '^(\[[0-9]+\] )?(device|figure|memory|method|product|shift|speed|time|updates|ranks|[a-z-]+ [0-9]+ [0-9.]+$|(diomp|libomptarget) +[a-z_]+ |[A-Z]: .*latency)' "$work/log" | sed 's/^/    | /' |
            tee -a "$text"
        # Which way collectives have gone.
        sed -n 's/^\(\[[0-9]*\] \)*diomp: \[0@[^]]*\] info: \(.*collectives .*\)/    | \2/p' "$work/log" | tee -a "$text"
        ;;
    esac
    no=$((no + 1))
    [ "$no" = 1 ] || printf ',\n    ' >>"$work/tests"
    awk -v name="$1" -v outcome="$2" -v seconds="$3" -v reason="$4" -f "$bundle/report.awk" "$work/log" >>"$work/tests"
}

# run_test NAME SECONDS COMMAND...: what it prints goes to $work/log.
run_test() {
    name=$1
    limit=$2
    shift 2
    : >"$work/log"
    left=$(awk "BEGIN { printf \"%d\", $allowed - $(since "$began") }")
    if [ "$left" -lt 5 ]; then
        record "$name" skipped 0 "no time left (GPU_CHECK_SECONDS=$allowed)"
        return
    fi
    [ "$limit" -le "$left" ] || limit=$left
    start=$(now)
    (cd "$work" && timeout -k 5 "$limit" "$@") >"$work/log" 2>&1 </dev/null
    status=$?
    seconds=$(since "$start")
    case $status in
    0) record "$name" passed "$seconds" "" ;;
    77) record "$name" skipped "$seconds" "$(sed -n 's/^skipped: //p' "$work/log" | head -n 1)" ;;
    124 | 137 | 143) record "$name" failed "$seconds" "not done within $limit s" ;;
    *) record "$name" failed "$seconds" "status $status" ;;
    esac
}

# gpu_test NAME SECONDS COMMAND...: as run_test where there is a driver. Target regions must run on the GPU.
gpu_test() {
    printf '%s' "$1" | grep -Eq "${GPU_CHECK_ONLY:-.}" || return 0
    if [ -z "$driver" ]; then
        : >"$work/log"
        record "$1" skipped 0 "no libcuda.so.1"
    else
        name=$1
        limit=$2
        shift 2
        run_test "$name" "$limit" env OMP_TARGET_OFFLOAD=MANDATORY "$@"
    fi
}

# If plain OpenMP finds no GPU, nothing else will: libomptarget says what it has tried.
ask_libomptarget() {
    [ -n "$driver" ] && grep -q "^plain.alone *failed" "$text" || return 0
    # shellcheck disable=SC2046 # a list of words
    timeout -k 5 30 env LIBOMPTARGET_DEBUG=1 $(program offload_plain) 2>&1 </dev/null | head -n 400 >"$out/gpu-check-debug.txt"
    say "    | what libomptarget did: gpu-check-debug.txt"
}

# program NAME ARGUMENT... and ranks N NAME ARGUMENT... are command lines; none of their words holds a space. The libraries
# are for them alone: the machine's own tools may need others.
loaded() { echo "${loader:+$loader --library-path $bundle/libc:$libraries} $bundle/bin/$*"; }
program() { echo "env LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ${preload:-} $(loaded "$@")"; }
ranks() {
    n=$1
    shift
    echo "$(program diomp-run) -n $n --timeout 120 -- $(loaded "$@")"
}

# one_process GROUP START: programs that drive all devices from one process, started by the words START, or as they are.
one_process() {
    group=$1
    by=${2:-$(program)}
    gpu_test $group.dpu 60 ${by}dpu-target all --grid 32 --steps 5 --pairs 18 --samples 32
    gpu_test $group.lookups 60 ${by}lookups-target grid --lookups 100000
    gpu_test $group.minimod_devices 60 ${by}minimod-devices --grid 96 64 64 --steps 50 --check
}

# The BLAS of NVIDIA, wherever it is installed (Python packages have it, too): only its own two libraries are taken from there.
find_blas() {
    [ -n "$driver" ] || return 0
    mkdir "$work/blas"
    timeout 30 find / \( -path /proc -o -path /sys -o -path "$work" \) -prune -o -name 'libcublas.so.1[123]' -print \
        >"$work/cublas" 2>/dev/null
    # The apps take the first version that the driver supports.
    all=
    for version in 13 12 11; do
        found=$(sed -n "/[.]$version\$/{p;q;}" "$work/cublas")
        [ -n "$found" ] && [ -e "$(dirname "$found")/libcublasLt.so.$version" ] || continue
        ln -s "$found" "$(dirname "$found")/libcublasLt.so.$version" "$work/blas/"
        all="$all $found"
    done
    fact cublas "${all:-none}"
    [ -n "$all" ] || say "no libcublas.so.13, .12 or .11 here: matmul and train use their own kernels"
    libraries=$libraries:$work/blas
}

# NCCL refuses two ranks on one GPU, unless it takes them to be on two hosts.
vendor() {
    nccl=${DIOMP_NCCL_LIBRARY:-$(timeout 20 find /usr/lib /usr/local /opt -name 'libnccl.so.2' 2>/dev/null | head -n 1)}
    if [ -z "$nccl" ]; then
        say "NCCL was not run: no libnccl.so.2 here"
        return
    fi
    for n in 1 2 4; do
        gpu_test figures.nccl.np$n 120 env DIOMP_LOG=info DIOMP_CCL=nccl DIOMP_NCCL_LIBRARY="$nccl" NCCL_SOCKET_IFNAME=lo \
            NCCL_IB_DISABLE=1 sh $bundle/expect.sh 'collectives.*NCCL' $(program diomp-run) -n $n --timeout 110 -- \
            sh $bundle/host-of-each.sh $(loaded offload_shared_device 16)
    done
}

# side_by_side GROUP: two ranks that share the GPU, and the same with the MPI of this machine, which goes through host memory:
# what the apps compute is the same.
side_by_side() {
    group=$1
    mpi="mpirun --allow-run-as-root --oversubscribe -n 2"
    has_mpi=no
    if [ -e "$bundle/mpi" ] && ldconfig -p 2>/dev/null | grep -q 'libmpi[.]so[.]40' &&
        mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
        has_mpi=yes
    fi
    gpu_test $group.put 60 $(ranks 2 bench_target_put)
    gpu_test $group.calls 60 $(ranks 2 bench_target_collectives)
    both minimod minimod $large
    both matmul matmul --n 4096
    [ $group != figures.mps ] || both matmul_8192 matmul --n 8192
    both cg cg --size 200
    both cg_single cg --size 200 --single-reduction
    both train train --epochs 20 --accuracy 80
    both train_wide train $wide
}

# both NAME APP ARGUMENT...
both() {
    name_of_both=$1
    app=$2
    shift 2
    gpu_test $group.$name_of_both.two_ranks 60 $(ranks 2 $app-target $*)
    [ $has_mpi = no ] || gpu_test $group.$name_of_both.two_ranks_mpi 60 $mpi $(program ../mpi/$app-target-mpi $*)
}

# Processes take turns on a GPU, unless NVIDIA's service lets them compute at the same time. It is this user's own, and changes
# nothing of the device.
# share_gpu FUNCTION ARGUMENT...: calls it meanwhile.
share_gpu() {
    command -v nvidia-cuda-mps-control >/dev/null || return 0
    [ -n "$driver" ] || return 0
    export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps"
    mkdir -p "$work/mps"
    if nvidia-cuda-mps-control -d; then
        "$@"
    fi
    stop_sharing
}
# Also when the script is ended.
stop_sharing() {
    [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && [ "$CUDA_MPS_PIPE_DIRECTORY" = "$work/mps" ] || return 0
    echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# calls_in_regions: calls inside target regions. Two ranks on one GPU wait for one another on the host only.
# While a region waits, the driver must load nothing.
calls_in_regions() {
    calls="DIOMP_ERRORS=return CUDA_MODULE_LOADING=EAGER DIOMP_TIMEOUT=15"
    for n in 1 2; do
        gpu_test calls.np$n 25 env $calls $(ranks $n offload_device_calls)
    done
    for region in step run plan; do
        gpu_test calls.minimod_$region 25 env $calls $(ranks 1 minimod-region $small --region $region)
        gpu_test figures.calls.minimod_$region 25 env $calls $(ranks 1 minimod-region $large --region $region)
    done
    gpu_test figures.calls.oneshot 20 env $calls $(ranks 1 oneshot)
    gpu_test figures.calls.gups 20 env $calls $(ranks 1 gups --log2 24)
    # By requests to the rank's proxy thread.
    gpu_test calls.ring.np1 25 env $calls $(ranks 1 offload_device_rings)
    gpu_test calls.ring.np2 25 env $calls DIOMP_DEVICE_CALLS=ring $(ranks 2 offload_device_rings)
    # The order of memory, between teams of one region.
    gpu_test calls.litmus 20 env $calls $(ranks 1 offload_device_litmus)
    gpu_test figures.calls.ring 25 env $calls $(ranks 1 bench_device_rings)
    gpu_test figures.calls.ring_tcp 40 env $calls DIOMP_NODE_SIZE=1 DIOMP_NETWORK=tcp $(ranks 2 bench_device_rings)
    gpu_test calls.timeout 20 env $calls DIOMP_TIMEOUT=2 $(ranks 1 offload_device_calls timeout)
    gpu_test figures.calls.np1 25 env $calls $(ranks 1 bench_device_calls)
}
# calls_together: regions of two ranks that wait for one another, each on a part of the GPU.
calls_together() {
    calls="DIOMP_ERRORS=return CUDA_MODULE_LOADING=EAGER DIOMP_TIMEOUT=15 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"
    gpu_test calls.together 25 env $calls $(ranks 2 offload_device_calls together)
    # Barriers of groups, and atomics on the memory of the other rank, whose regions run meanwhile, by requests too.
    gpu_test calls.together_ring 30 env $calls DIOMP_DEVICE_CALLS=ring $(ranks 2 offload_device_calls together)
    gpu_test calls.ring.together 30 env $calls DIOMP_DEVICE_CALLS=ring $(ranks 2 offload_device_rings)
    gpu_test calls.litmus.together 20 env $calls $(ranks 2 offload_device_litmus)
    gpu_test calls.litmus.together_ring 20 env $calls DIOMP_DEVICE_CALLS=ring $(ranks 2 offload_device_litmus)
    for region in step run plan; do
        gpu_test calls.minimod_$region.together 25 env $calls $(ranks 2 minimod-region $small --region $region)
        gpu_test figures.calls.minimod_$region.together 25 env $calls $(ranks 2 minimod-region $large --region $region)
    done
    gpu_test figures.calls.minimod_host.together 25 env $calls $(ranks 2 minimod-target $large)
    gpu_test figures.calls.oneshot.together 25 env $calls $(ranks 2 oneshot)
    gpu_test figures.calls.gups.together 25 env $calls $(ranks 2 gups --log2 24)
    gpu_test figures.calls.together 25 env $calls $(ranks 2 bench_device_calls --together)
}

# Ranks that take each other to be on other nodes: by a UCX that knows CUDA, and by GASNet-EX with memory kinds.
network() {
    apart="DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M DIOMP_NODE_SIZE=1 DIOMP_NETWORK=ucx"
    usual=$libraries
    by_network="DIOMP_STATS=summary sh $bundle/expect.sh put_detach.*conduit"
    gpu_test network.staged.np2 60 env $apart UCX_TLS=tcp $(ranks 2 offload_target)
    libraries=$bundle/ucx-cuda:$usual
    for way in tcp,cuda_copy all; do
        gpu_test network.target.$way 60 env $apart UCX_TLS=$way $by_network $(ranks 2 offload_target)
        gpu_test figures.network.$way 60 env $apart DIOMP_ERRORS=abort DIOMP_DEVICE_SEGMENT_SIZE=1G UCX_TLS=$way \
            $(ranks 2 bench_target_put)
    done
    # Large data straight between the program's memory and the GPU of a service.
    straight="env DIOMP_LOCAL_DEVICES=off DIOMP_NETWORK=ucx UCX_TLS=tcp,cuda_copy $(program diomp-run) --timeout 120
        --remote-devices localhost:cuda -- $(loaded)"
    gpu_test network.remote.plain 60 ${straight}offload_plain
    gpu_test figures.regions.remote_ucx 60 ${straight}bench_remote_regions
    gpu_test network.freed.np2 60 env $apart DIOMP_DEVICE_SEGMENT_SIZE=256M $(ranks 2 offload_freed)
    gpu_test network.variables.np2 60 env $apart $(ranks 2 offload_variables $bundle/lib/liboffload_variables_library.so)
    if [ -e "$bundle/gasnet" ]; then
        libraries=$bundle/gasnet:$bundle/ucx-cuda:$usual
        apart="$apart DIOMP_NETWORK=gasnet DIOMP_NETWORK_DEVICE_MEMORY=on DIOMP_NETWORK_RMA=rdma GASNET_SUPERNODE_MAXSIZE=1 UCX_TLS=tcp,cuda_copy"
        spawn="GASNET_UCX_SPAWNER=ssh GASNET_SSH_CMD=$bundle/ssh GASNET_SSH_SERVERS=localhost GASNET_ENVCMD=/usr/bin/env GASNET_SPAWN_ARGS=M,4,2,,"
        gpu_test network.gasnet.contract 60 env $apart $spawn DIOMP_TEST_DEVICE_RANGES=cuda DIOMP_TEST_DEVICES=all \
            DIOMP_CONDUIT=gasnet GTEST_FILTER=devices_of_ranks.* $(program ../gasnet/conduit_contract)
        gpu_test network.gasnet.target 60 env $apart $spawn $by_network $(program offload_target)
        gpu_test figures.network.gasnet 60 env $apart $spawn DIOMP_ERRORS=abort DIOMP_DEVICE_SEGMENT_SIZE=1G \
            $(program bench_target_put)
        [ ! -e "$bundle/gasnet/testsmall" ] || gpu_test figures.network.gasnet_own 60 env $apart $spawn \
            $(program ../gasnet/testsmall -cuda-uva -local-gpu -remote-gpu 1000 65536)
    fi
    libraries=$usual
}

run_all() {
    # Says whether the bundle works at all on this machine.
    run_test host.minimod.np2 60 env OMP_TARGET_OFFLOAD=DISABLED $(ranks 2 minimod-target --grid 32 20 20 --steps 20 --check)

    small="--grid 96 64 64 --steps 100 --check"
    large="--grid 400 400 400 --steps 100"
    gpu_test backend.device 120 $(program device_real_test)
    gpu_test backend.kernels 120 $(program device_reduce_test --gtest_filter=real/*)
    gpu_test info.topology 60 $(program diomp-info --topology -n 2)
    sanitizer=$(command -v compute-sanitizer || echo "")
    if [ -n "$sanitizer" ]; then # of CUDA, where there is one
        gpu_test backend.memcheck 120 $sanitizer --error-exitcode 9 $(program device_real_test --gtest_filter=*reduce*:*copies*)
    fi
    gpu_test plain.alone 60 $(program offload_plain)
    ask_libomptarget
    gpu_test plain.with_runtime 60 $(preload="LD_PRELOAD=$bundle/lib/libdiomp.so.1" program offload_plain)
    calls_in_regions
    share_gpu calls_together
    # They provoke errors, want them returned, and fill their segments.
    for n in 1 2 4; do
        gpu_test offload.target.np$n 60 env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M $(ranks $n offload_target)
    done
    for n in 2 4; do
        gpu_test offload.misuse.np$n 60 env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M $(ranks $n offload_misuse)
        gpu_test offload.variables.np$n 60 env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M \
            $(ranks $n offload_variables $bundle/lib/liboffload_variables_library.so)
    done
    gpu_test offload.freed.np2 60 env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=256M $(ranks 2 offload_freed)
    gpu_test offload.compat.np2 60 $(ranks 2 offload_compat)
    plans="env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M DIOMP_DEVICES_PER_RANK=1"
    gpu_test offload.plan 60 $plans $(ranks 1 offload_plan)
    gpu_test offload.plan_sequences 60 $plans $(ranks 1 offload_plan_sequences 50)
    gpu_test offload.plan_sequences_one_by_one 60 $plans DIOMP_PLAN_GRAPHS=off $(ranks 1 offload_plan_sequences 20)
    gpu_test offload.threads 60 $plans $(ranks 1 offload_threads)
    # Ranks that share the GPU, from device to device and by way of host memory.
    for n in 2 4; do
        gpu_test figures.collectives.np$n 60 env DIOMP_LOG=info DIOMP_DEVICE_DIRECT_THRESHOLD=0 $(ranks $n offload_shared_device 64)
    done
    gpu_test figures.collectives_by_host 60 env DIOMP_LOG=info DIOMP_DEVICE_DIRECT_THRESHOLD=1T $(ranks 2 offload_shared_device 64)
    for n in 1 2; do
        gpu_test apps.minimod.np$n 60 $(ranks $n minimod-target $small)
        gpu_test apps.matmul.np$n 60 $(ranks $n matmul-target --n 600)
        gpu_test apps.matmul_own.np$n 60 $(ranks $n matmul-target --n 600 --blas off)
        gpu_test apps.cg.np$n 60 $(ranks $n cg-target --size 48)
        gpu_test apps.cg_single.np$n 60 $(ranks $n cg-target --size 48 --single-reduction)
        gpu_test apps.train.np$n 60 $(ranks $n train-target --epochs 20 --accuracy 80)
        gpu_test apps.train_own.np$n 60 $(ranks $n train-target --epochs 20 --accuracy 80 --blas off)
    done
    one_process apps ""
    remote="env DIOMP_LOCAL_DEVICES=off $(program diomp-run) --timeout 120 --remote-devices localhost:cuda -- $(loaded)"
    gpu_test remote.plain 60 ${remote}offload_plain
    # Two ranks whose sessions share the GPU and communicate by themselves.
    pair="env DIOMP_ERRORS=return CUDA_MODULE_LOADING=EAGER DIOMP_TIMEOUT=15 DIOMP_LOCAL_DEVICES=off DIOMP_DEVICE_SEGMENT_SIZE=256M"
    pair="$pair $(program diomp-run) -n 2 --timeout 60 --remote-devices localhost:cuda:1,localhost:cuda:1 -- $(loaded)"
    gpu_test remote.calls.np2 30 ${pair}offload_device_calls
    gpu_test remote.rings.np2 30 ${pair}offload_device_rings
    gpu_test remote.service_gpu.np2 40 ${pair}offload_service_gpu
    one_process remote "$remote"
    gpu_test figures.regions.local 60 $(program bench_remote_regions)
    gpu_test figures.regions.remote 60 ${remote}bench_remote_regions
    gpu_test figures.devices.local 60 $(program minimod-devices --grid 128 128 128 --steps 20)
    gpu_test figures.devices.remote 60 ${remote}minimod-devices --grid 128 128 128 --steps 20
    vendor
    network
    gpu_test figures.plans 30 $(ranks 1 bench_plans)
    gpu_test figures.plans_one_by_one 30 env DIOMP_PLAN_GRAPHS=off $(ranks 1 bench_plans)
    gpu_test figures.regions 60 $(program bench_region_latency)
    gpu_test figures.regions_copied_by_driver 60 env DIOMP_COPY_THREADS=0 $(program bench_region_latency)
    gpu_test figures.minimod.np1 60 $(ranks 1 minimod-target $large)
    gpu_test figures.matmul.np1 60 $(ranks 1 matmul-target --n 4096)
    gpu_test figures.matmul_8192.np1 60 $(ranks 1 matmul-target --n 8192)
    gpu_test figures.matmul_own.np1 60 $(ranks 1 matmul-target --n 4096 --blas off)
    gpu_test figures.cg.np1 60 $(ranks 1 cg-target --size 200)
    gpu_test figures.cg_single.np1 60 $(ranks 1 cg-target --size 200 --single-reduction)
    gpu_test figures.train.np1 60 $(ranks 1 train-target --epochs 20 --accuracy 80)
    wide="--hidden 2048 --batch 4096 --samples 16384 --epochs 5 --accuracy 1" # its products take nearly all of a step
    gpu_test figures.train_wide.np1 60 $(ranks 1 train-target $wide)
    side_by_side figures
    share_gpu side_by_side figures.mps
}

say "gpu-check of $(value_of commit), for $(value_of archs)"
fact system "$(sed -n 's/^PRETTY_NAME="*\([^"]*\)"*$/\1/p' /etc/os-release 2>/dev/null), Linux $(uname -r)," \
    "$(grep -c ^processor /proc/cpuinfo) cores"
fact gpu "$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader 2>/dev/null | tr '\n' ';')"
fact module "$(head -n 1 /proc/driver/nvidia/version 2>/dev/null)"
driver=$(find_driver)
[ -z "$driver" ] || link_driver "$driver"
fact driver "${driver:-no libcuda.so.1}"
choose_libc
find_blas
say ""
run_all

verdict=passed
[ -n "$driver" ] || verdict="no GPU was tested: no libcuda.so.1"
[ "$failed" = 0 ] || verdict=failed
say ""
say "$passed passed, $failed failed, $skipped skipped in $(since "$began") s"
say "verdict: $verdict"
{
    printf '{"commit": "%s", "verdict": "%s",\n' "$(value_of commit)" "$verdict"
    printf ' "passed": %d, "failed": %d, "skipped": %d, "seconds": %s,\n' "$passed" "$failed" "$skipped" "$(since "$began")"
    awk -F '\t' '{ gsub(/["\\]/, "", $2); printf "%s\"%s\": \"%s\"", NR == 1 ? " \"facts\": {" : ", ", $1, $2 } END { print "}," }' \
        "$work/facts"
    printf ' "tests": [\n    %s]}\n' "$(cat "$work/tests")"
} >"$json"
[ "$failed" = 0 ]
