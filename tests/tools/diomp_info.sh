#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What diomp-info says, and what --doctor finds when something is wrong.
#   diomp_info.sh BIN_DIR CUDA_STAND_IN HIP_STAND_IN
set -u
bin=${1:?directory of diomp-info}
cuda=${2:?stand-in for the driver of CUDA}
hip=${3:?stand-in for the runtime of HIP}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
unset DIOMP_CUDA_LIBRARY DIOMP_HIP_LIBRARY DIOMP_DEVICES_PER_RANK DIOMP_SEGMENT_BASE DIOMP_SEGMENT_SIZE DIOMP_LOG

wrong() {
    echo "FAILED: $1"
    sed 's/^/    | /' "$work/out"
    failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: the command ends with STATUS and prints PATTERN on some line.
expect() {
    local status=$1 pattern=$2
    shift 2
    "$@" >"$work/out" 2>&1
    local got=$?
    [ "$got" = "$status" ] || wrong "status $got instead of $status: $*"
    grep -qE "$pattern" "$work/out" || wrong "no '$pattern': $*"
}

expect 0 '^diomp-info \(DiOMP\) [0-9.]+$' "$bin/diomp-info" --version
expect 0 '^conduit +auto' "$bin/diomp-info"
expect 0 '^ +0: self$' "$bin/diomp-info"
expect 0 '^ +1-2: shm$' "$bin/diomp-run" -n 3 "$bin/diomp-info"
if ldconfig -p | grep -q libucp.so; then
    expect 0 '^ +2-3: ucx \(tcp.*, active messages\): .* processor$' \
        env DIOMP_NODE_SIZE=2 DIOMP_NETWORK=ucx UCX_TLS=tcp "$bin/diomp-run" -n 4 "$bin/diomp-info"
fi
expect 0 'DIOMP_SEGMENT_SIZE = 64 MiB  \(set\)' env DIOMP_SEGMENT_SIZE=64M "$bin/diomp-info"
expect 0 '^ +0 .* 64 MiB' env DIOMP_SEGMENT_SIZE=64M "$bin/diomp-info"
grep -q DIOMP_TIMEOUT "$work/out" && wrong "a setting that nobody asked for"
expect 0 '^settings \(all: diomp-info --settings\)$' "$bin/diomp-info"
expect 0 '^  all have their defaults$' env -i PATH="$PATH" "$bin/diomp-info"
expect 0 'DIOMP_TIMEOUT = 7  \(set\)' env DIOMP_TIMEOUT=7 "$bin/diomp-info" --settings
expect 1 'DIOMP_TIMEOUT=soon' env DIOMP_TIMEOUT=soon "$bin/diomp-info" --settings
expect 0 '^ +2 ' "$bin/diomp-run" -n 3 "$bin/diomp-info"
[ "$(grep -c '^conduit' "$work/out")" = 1 ] || wrong "not exactly one report from three ranks"
expect 0 . "$bin/diomp-run" -n 2 "$bin/diomp-info" --json
python3 - "$work/out" <<'END' || wrong "JSON of two ranks"
import json, sys
report = json.load(open(sys.argv[1]))
assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
assert [rank["path_from_rank_0"] for rank in report["ranks"]] == ["self", "shm"]
assert all(rank["segment"]["nbytes"] > 0 for rank in report["ranks"])
assert report["version"] == report["library"]["version"]
assert {"DIOMP_SEGMENT_SIZE", "DIOMP_LOG"} <= {row["name"] for row in report["settings"]}
END

# The text of a bug report: every section, the errors, nothing that may be a secret, and only for its owner.
secret=$(printf '0123456789abcdef%.0s' 1 2 3 4)
printf 'an old line\ndiomp: rank 3: a failure\nsent pass-the-word/ and http://me:word1@host/x:y@z and b/c://d\n' > "$work/errors"
cd "$work" || exit 1
expect 0 '^diomp-bug-report.txt: read it' env DIOMP_TIMEOUT=7 DIOMP_TEST_TOKEN=hidden OMP_NOTE="x $secret" \
    some_password=pass-the-word/ UCX_NOTE=hidden UCX_PROXY=http://user:word2@proxy DIOMP_TOKEN=a-shared-word OTHER_KEY=/bin/sh \
    OMP_SHELL=/bin/sh "$bin/diomp-info" --bug-report --errors errors
cd - > /dev/null || exit 1
[ "$(stat -c %a "$work/diomp-bug-report.txt")" = 600 ] || wrong "others can read the report"
for pattern in '^kernel: Linux' '^== diomp-info --build$' '^== diomp-info --doctor$' '^== diomp-info --topology$' \
    '^ *DIOMP_TIMEOUT = 7 ' '^DIOMP_TIMEOUT=7$' '^DIOMP_TEST_TOKEN=\(set, not shown\)$' '^OMP_NOTE=x \(a long number\)$' \
    '^diomp: rank 3: a failure$' '^sent \(not shown\) and http://\(not shown\)@host/x:y@z and b/c://d$' '^UCX_NOTE=\(not shown\)$' \
    '^UCX_PROXY=http://\(not shown\)@proxy$' '^OMP_SHELL=/bin/sh$'; do
    grep -qE "$pattern" "$work/diomp-bug-report.txt" || wrong "no '$pattern' in the bug report"
done
if grep -qE "hidden|$secret|pass-the-word|word[12]|a-shared-word" "$work/diomp-bug-report.txt"; then wrong "a secret in the bug report"; fi
if [ "$(id -un)" != root ] && grep -qw "$(id -un)" "$work/diomp-bug-report.txt"; then wrong "the user's name"; fi
if [ "$(uname -n)" != localhost ] && grep -qw "$(uname -n)" "$work/diomp-bug-report.txt"; then wrong "the host's name"; fi
expect 0 '^diomp: line 200$' bash -c "seq -f 'diomp: line %g' 300 | '$bin/diomp-info' --bug-report - --errors -"
grep -qx 'diomp: line 100' "$work/out" && wrong "more than the last 200 lines"
expect 1 'cannot read .*/none' "$bin/diomp-info" --bug-report - --errors "$work/none"
expect 1 'cannot be written' "$bin/diomp-info" --bug-report /proc/none
expect 1 'run it without diomp-run' "$bin/diomp-run" -n 2 "$bin/diomp-info" --bug-report
expect 1 'requires --bug-report' "$bin/diomp-info" --errors "$work/errors"

# What was built in; the same alone and in the report.
expect 0 '^built +20[0-9]{2}-[01][0-9]-[0-3][0-9], by (Clang|GNU) [0-9.]+, [A-Za-z]+( with sanitizers .*)? for [a-z0-9_]+$' \
    "$bin/diomp-info" --build
expect 0 '^networks +shm, tcp' "$bin/diomp-info" --build
cp "$work/out" "$work/build"
expect 0 "^$(grep '^networks' "$work/build")\$" "$bin/diomp-info"
expect 0 '"compiler": "(Clang|GNU) ' "$bin/diomp-info" --build --json
python3 - "$work/out" "$work/build" "$bin" <<'END' || wrong "what --build says"
import json, os, re, sys
build, text, bin = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), sys.argv[3]
for part, name in (("ucx", "UCX"), ("gasnet", "GASNet-EX"), ("gpi2", "GPI-2"), ("pmix", "PMIx"), ("python", "Python"),
                   ("offload", "libomptarget"), ("pragmas", "pragmas"), ("fortran", "Fortran")):
    version = re.escape(build[part] or "")
    named = re.search(f"^[^;]*{name}[^,]* {version}(,|;|$)" if version else f"; not .*{name}(,|$)", text, re.M)
    assert named, (part, build[part])
    assert f"built      {build['date']}, by {build['compiler']}, {build['type']}" in text
assert (build["fortran"] is not None) == os.path.exists(f"{bin}/diompfc")
# Parts that are built after the tools.
for part, file in (("offload", "diomp/libomptarget.so"), ("pragmas", "libdiomp-pragma.so")):
    assert build[part] is not None or not os.path.exists(f"{bin}/../lib/{file}"), part
END

expect 0 '^A job can run here' "$bin/diomp-info" --doctor
expect 0 '"check": "address range"' "$bin/diomp-info" --doctor --json
python3 -m json.tool "$work/out" >/dev/null || wrong "JSON of the doctor"
expect 0 '^note +processors' "$bin/diomp-info" --doctor --ranks 4096
expect 0 '^note +settings +DIOMP_SEGMNT_SIZE is set' env DIOMP_SEGMNT_SIZE=1G "$bin/diomp-info" --doctor
expect 1 '^BAD +settings +DIOMP_LOG=loud' env DIOMP_LOG=loud "$bin/diomp-info" --doctor
expect 1 '^BAD +memory files +ftruncate.*too large' bash -c "ulimit -f 1000; '$bin/diomp-info' --doctor"
expect 1 'files are limited to .*remedy: .*ulimit -f' bash -c "ulimit -f 1000; '$bin/diomp-run' -n 2 '$bin/diomp-info'"
expect 0 '^ +1: shm$' bash -c "ulimit -f 2000000; DIOMP_SEGMENT_SIZE=8M '$bin/diomp-run' -n 2 '$bin/diomp-info'"
mkdir "$work/emulator"
printf '#!/bin/sh\necho "qemu-aarch64 version 99"\n' >"$work/emulator/qemu-aarch64-static"
chmod +x "$work/emulator/qemu-aarch64-static"
expect 0 '^ok +emulator +qemu-aarch64 version 99: runs code for DPUs' env PATH="$work/emulator:$PATH" "$bin/diomp-info" --doctor
expect 0 '^ok +emulator +none .qemu-user-static' env PATH=/nowhere "$bin/diomp-info" --doctor
expect 1 '^BAD +address range' bash -c "ulimit -v 4000000; '$bin/diomp-info' --doctor"
# A small and a full /dev/shm, where this user may mount one.
if unshare -m mount -t tmpfs none /dev/shm 2>/dev/null; then
    expect 0 '^note +/dev/shm +1.* left' unshare -m bash -c "mount -t tmpfs -o size=1M none /dev/shm; '$bin/diomp-info' --doctor"
    expect 1 '^BAD +/dev/shm +0.* left.*SIGBUS' unshare -m bash -c \
        "mount -t tmpfs -o size=64K none /dev/shm; head -c 64K /dev/zero >/dev/shm/full; '$bin/diomp-info' --doctor"
fi
for what in "" --build --topology; do
    expect 1 '^diomp-info: standard output cannot be written' bash -c "'$bin/diomp-info' $what >/dev/full"
done
for tool in diomp-run diomp-deviced diomp-bench; do
    expect 1 "^($tool: )?standard output cannot be written" bash -c "'$bin/$tool' --help >/dev/full"
done
expect 1 '^BAD +address range +2 ranks times 30.* exceed the address arena' \
    env DIOMP_SEGMENT_SIZE=30T "$bin/diomp-info" --doctor
expect 1 '^diomp-info: --ranks: Value 0 not in range' "$bin/diomp-info" --doctor --ranks 0
# The node without a GPU, then with two and four that a stand-in has.
none=(env DIOMP_CUDA_LIBRARY=/nowhere/libcuda.so DIOMP_HIP_LIBRARY=/nowhere/libhip.so)
expect 0 '^NUMA node +0: .* cpus 0' "${none[@]}" "$bin/diomp-info" --topology
grep -qE '^package +0: [1-9][0-9]* core' "$work/out" || wrong "no package"
grep -qE '^ +cuda: none: .*/nowhere/libcuda.so' "$work/out" || wrong "no word about CUDA"
grep -qE '^ +hip: none: .*/nowhere/libhip.so' "$work/out" || wrong "no word about HIP"
grep -qE '^ +host memory +host memory +the processor copies' "$work/out" || wrong "no path"
if [ -e "$bin/../lib/diomp/libomptarget.so" ]; then
    expect 0 '^  rank 1: host 0, host 1 ' "${none[@]}" "$bin/diomp-info" --topology -n 2 --devices-per-rank 2
    expect 0 '^  rank 1: host 1 ' "${none[@]}" DIOMP_DEVICE_NUMA_NODES=-1,-1,-1,-1 "$bin/diomp-info" --topology -n 2
    expect 1 'a rank has 4 host devices' "${none[@]}" "$bin/diomp-info" --topology -n 1 --devices-per-rank 5
fi
gpus=(env DIOMP_CUDA_LIBRARY="$cuda" DIOMP_HIP_LIBRARY=/nowhere/libhip.so FAKE_CUDA_DEVICES=4)
expect 0 '^ +cuda 1: Stand-in 1, FFFF:01:00.0, 64 MiB .*NUMA node not known; shared by IPC; reaches 0, 2, 3$' \
    "${gpus[@]}" "$bin/diomp-info" --topology
grep -qE '^  cuda device +itself +the device copies +IPC +bounce' "$work/out" || wrong "path of a device to itself"
grep -qE '^  cuda device +one it reaches +peer access +IPC and peer access' "$work/out" || wrong "path by peer access"
grep -qE 'cannot reach' "$work/out" && wrong "a pair that does not exist"
expect 0 '^  cuda device +one it cannot reach +bounce .* bounce' \
    "${gpus[@]}" FAKE_CUDA_PEERS=none "$bin/diomp-info" --topology
expect 0 '^  cuda device +one it reaches +peer access +bounce ' \
    "${gpus[@]}" DIOMP_DEVICE_PATHS=no-ipc "$bin/diomp-info" --topology
expect 0 '^  cuda device +one it reaches +bounce .* IPC and peer access' \
    "${gpus[@]}" DIOMP_DEVICE_PATHS=no-peer "$bin/diomp-info" --topology
# How calls in target regions reach memory.
expect 0 '^  cuda device +other ranks of the node, same device +loads and stores' "${gpus[@]}" "$bin/diomp-info" --topology
grep -qE '^  cuda device +other nodes, global host memory +requests to' "$work/out" || wrong "calls to other nodes"
grep -qE '^  cuda device +other ranks of the node, other devices +loads and stores$' "$work/out" || wrong "calls by peer access"
expect 0 '^  cuda device +other ranks of the node, other devices +loads and stores with peer access, else requests' \
    "${gpus[@]}" FAKE_CUDA_PEERS=none "$bin/diomp-info" --topology
expect 0 '^  cuda device +other nodes, global host memory +unreachable' \
    "${gpus[@]}" DIOMP_DEVICE_CALLS=direct "$bin/diomp-info" --topology
expect 0 '^  cuda device +other ranks of the node, same device +requests to' \
    "${gpus[@]}" DIOMP_DEVICE_CALLS=ring "$bin/diomp-info" --topology
expect 1 'DIOMP_DEVICE_CALLS=rings' env DIOMP_DEVICE_CALLS=rings "$bin/diomp-info" --settings
expect 0 'DIOMP_DEVICE_PATHS = no-peer +\(set\)' env DIOMP_DEVICE_PATHS=no-peer "$bin/diomp-info" --settings
expect 0 '^  rank 1: cuda 2, cuda 3 ' "${gpus[@]}" "$bin/diomp-info" --topology -n 2 --devices-per-rank 2
expect 0 '^  rank 5: cuda 1 ' "${gpus[@]}" "$bin/diomp-info" --topology -n 6
# A rank on one processor, next to the third device.
cpu=$(awk '/^Cpus_allowed_list/ { split($2, list, "[-,]"); print list[1] }' /proc/self/status)
node=$(basename /sys/devices/system/cpu/cpu"$cpu"/node*)
if [ "$node" != "node*" ]; then
    near=${node#node}
    far=$((near + 1))
    expect 0 "^  rank 0: cuda 2 .*NUMA node $near\\)" "${gpus[@]}" DIOMP_DEVICE_NUMA_NODES=$far,$far,$near,$far \
        taskset -c "$cpu" "$bin/diomp-info" --topology -n 1
fi
expect 1 '3 ranks on this node with 2 devices each: 4 devices are here' \
    "${gpus[@]}" DIOMP_DEVICES_PER_RANK=2 "$bin/diomp-info" --topology -n 3
expect 0 '^binding +3 ranks on this node, 1 per rank' "${gpus[@]}" "$bin/diomp-run" -n 3 "$bin/diomp-info" --topology
[ "$(grep -c '^machine' "$work/out")" = 1 ] || wrong "not exactly one topology from three ranks"
expect 0 '^  rank 2: shm$' "${gpus[@]}" "$bin/diomp-run" -n 3 "$bin/diomp-info" --topology
if [ -x "$bin/diomp-deviced" ]; then
    expect 0 '^  rank 1: shm; remote device 0 by shm, remote device 1 by shm; from own remote devices by shm$' \
        env DIOMP_NETWORK=tcp "$bin/diomp-run" -n 2 --remote-devices localhost:4 -- "$bin/diomp-info" --topology
    expect 0 '^  rank 1: shm; remote device 0 by tcp.*; from own remote devices by shm and tcp, service to service$' \
        env DIOMP_NETWORK=tcp DIOMP_NODE_SIZE=3 "$bin/diomp-run" -n 2 --remote-devices localhost:4 -- "$bin/diomp-info" --topology
    expect 0 '"self; remote device 0 by shm' \
        env DIOMP_NETWORK=tcp "$bin/diomp-run" -n 1 --remote-devices localhost -- "$bin/diomp-info" --topology --json
fi
expect 0 . "${gpus[@]}" DIOMP_HIP_LIBRARY="$hip" "$bin/diomp-info" --topology -n 2 --json
python3 - "$work/out" <<'END' || wrong "JSON of the topology"
import json, sys
found = json.load(open(sys.argv[1]))
backends = {each["backend"]: each for each in found["backends"]}
assert [each["name"] for each in backends["cuda"]["devices"]] == [f"Stand-in {i}" for i in range(4)]
assert backends["cuda"]["reaches"] == [[True] * 4] * 4 and backends["cuda"]["missing"] == ""
assert len(backends["hip"]["devices"]) == 2 and not backends["host"]["shared_by_ranks"]
assert [rank["devices"] for rank in found["ranks"]] == [["cuda 0"], ["cuda 1"]]
assert {"from": "cuda device", "to": "hip device"}.items() <= found["paths"][-1].items()
assert {"from": "cuda device", "to": "its rank's memory on it", "path": "loads and stores"} in found["calls"]
assert found["cores"] and all(core["cpus"] for core in found["cores"])
END
expect 1 'DIOMP_DEVICE_NUMA_NODES=0;1' env 'DIOMP_DEVICE_NUMA_NODES=0;1' "$bin/diomp-info" --settings
expect 1 'DIOMP_DEVICES_PER_RANK=0' env DIOMP_DEVICES_PER_RANK=0 "$bin/diomp-info" --settings
expect 0 'DIOMP_DEVICE_NUMA_NODES = 0,-1  \(set\)' env DIOMP_DEVICE_NUMA_NODES=0,-1 "$bin/diomp-info" --settings
# Beside a launcher of another version, and without the library.
mkdir -p "$work/prefix/bin"
cp "$bin/diomp-info" "$work/prefix/bin/"
printf '#!/bin/sh\necho diomp-run 9.9.9\n' >"$work/prefix/bin/diomp-run"
chmod +x "$work/prefix/bin/diomp-run"
expect 1 '^BAD +launcher .*9\.9\.9' "$work/prefix/bin/diomp-info" --doctor
expect 1 '^BAD +library .*cannot be opened' "$work/prefix/bin/diomp-info" --doctor
expect 1 '' "$work/prefix/bin/diomp-info"

[ "$failures" = 0 ] && echo "diomp_info: ok"
exit "$failures"
