#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: the run, from inside the bundle. Needs a shell, awk and timeout (a busybox will do).
# Every test has a time limit of its own, and none stops the others. GPU_CHECK_ONLY=PATTERN runs those whose names it matches.
set -u
bundle=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-.}
mkdir -p "$out"
text=$out/gpu-check.txt
json=$out/gpu-check.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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
        loader="$bundle/libc/ld-linux-x86-64.so.2 --library-path $bundle/libc:$libraries"
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
    passed:figures.* | passed:backend.*)
        grep -E '^(\[[0-9]+\] )?(device|figure|speed|time|ranks|[a-z-]+ [0-9]+ [0-9.]+$)' "$work/log" | sed 's/^/    | /' |
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
program() { echo "env LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ${preload:-} $loader $bundle/bin/$*"; }
ranks() {
    n=$1
    shift
    echo "$(program diomp-run) -n $n --timeout 120 -- $loader $bundle/bin/$*"
}

# shellcheck disable=SC2046 # lists of words
run_all() {
    # Says whether the bundle works at all on this machine.
    run_test host.minimod.np2 60 env OMP_TARGET_OFFLOAD=DISABLED $(ranks 2 minimod-target --grid 32 20 20 --steps 20 --check)

    small="--grid 96 64 64 --steps 100 --check"
    gpu_test backend.device 120 $(program device_real_test)
    gpu_test plain.alone 60 $(program offload_plain)
    ask_libomptarget
    gpu_test plain.with_runtime 60 $(preload="LD_PRELOAD=$bundle/lib/libdiomp.so.0" program offload_plain)
    # They provoke errors, want them returned, and fill their segments.
    for n in 1 2 4; do
        gpu_test offload.target.np$n 60 env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M $(ranks $n offload_target)
    done
    for n in 2 4; do
        gpu_test offload.misuse.np$n 60 env DIOMP_ERRORS=return DIOMP_DEVICE_SEGMENT_SIZE=64M $(ranks $n offload_misuse)
    done
    # Ranks that share the GPU, from device to device and by way of host memory.
    for n in 2 4; do
        gpu_test figures.collectives.np$n 60 env DIOMP_LOG=info DIOMP_DEVICE_DIRECT_THRESHOLD=0 $(ranks $n offload_shared_device 64)
    done
    gpu_test figures.collectives_by_host 60 env DIOMP_LOG=info DIOMP_DEVICE_DIRECT_THRESHOLD=1T $(ranks 2 offload_shared_device 64)
    for n in 1 2; do
        gpu_test apps.minimod.np$n 60 $(ranks $n minimod-target $small)
        gpu_test apps.matmul.np$n 60 $(ranks $n matmul-target --n 600)
    done
    gpu_test figures.regions 60 $(program bench_region_latency)
    gpu_test figures.put 60 $(ranks 2 bench_target_put)
    for n in 1 2; do
        gpu_test figures.minimod.np$n 60 $(ranks $n minimod-target --grid 400 400 400 --steps 100)
        gpu_test figures.matmul.np$n 60 $(ranks $n matmul-target --n 4096)
    done
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
# What a large Minimod maps fits in half of it.
export DIOMP_DEVICE_SEGMENT_SIZE="${DIOMP_DEVICE_SEGMENT_SIZE:-4G}"
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
