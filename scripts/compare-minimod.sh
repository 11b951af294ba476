#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Minimod against its MPI twin, and what the overlap brings:
#   scripts/compare-minimod.sh BUILD_DIR [REPETITIONS [minimod options]]
# 2 ranks, each bound to a core of its own, one thread each. The variants run in turn, so that a slow minute of the
# machine hits all of them; the table shows medians (and the range) of the repetitions.
#   scripts/test-hosts.py --hosts 2 -- scripts/compare-minimod.sh BUILD_DIR ...
# The same with the ranks on two hosts (those of DIOMP_TEST_HOSTS), which share this machine: each has a core of it, as if
# it were a machine of one core. Else the system puts both ranks on one core for a while, from run to run another while. A
# last run with DIOMP_TRACE then shows how much of the puts' time was hidden behind computation.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -x "$1/bin/minimod" ] || [ ! -x "$1/bin/minimod-mpi" ]; then
    echo "usage: compare-minimod.sh BUILD_DIR [REPETITIONS [minimod options]]; needs bin/minimod and bin/minimod-mpi" >&2
    exit 2
fi
bin=$(cd "$1" && pwd)/bin
repetitions=${2:-9}
shift $(($# < 2 ? $# : 2))
options=(--grid 200 --steps 100 --receivers 1 --progress off "$@")
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
export OMP_NUM_THREADS=1
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# The pair whose steps run in target regions, where it was built.
devices=
[ ! -x "$bin/minimod-target" ] || [ ! -x "$bin/minimod-target-mpi" ] || devices="DiOMP/target MPI/target"

place="2 ranks bound to cores"
diomp_place=(-n 2 --bind-to core)
mpi_place=(-n 2 --bind-to core)
core_of_host=()
if [ -n "${DIOMP_TEST_HOSTS:-}" ]; then
    place="1 rank on each of 2 hosts of one core"
    # The same for both libraries.
    core_of_host=(bash -c 'exec taskset -c $((${DIOMP_RANK:-$OMPI_COMM_WORLD_RANK} % $(nproc --all))) "$@"' host)
    IFS=, read -ra hosts <<<"$DIOMP_TEST_HOSTS"
    # Open MPI's best way over TCP, as in bench/compare-hosts.
    diomp_place=(-n 2 --hosts "${hosts[0]}:1,${hosts[1]}:1" --rsh "$DIOMP_TEST_RSH" --bind-to none)
    mpi_place=(-n 2 --host "${hosts[0]}:1,${hosts[1]}:1" --mca plm_rsh_agent "$DIOMP_TEST_RSH" --bind-to none
        --mca pml ob1 --mca btl tcp,vader,self)
fi

diomp() { "$bin/diomp-run" "${diomp_place[@]}" -- "${core_of_host[@]}" "$bin/$1" "${options[@]}" --overlap "$2"; }
mpi() { "$mpirun" --allow-run-as-root "${mpi_place[@]}" "${core_of_host[@]}" "$bin/$1" "${options[@]}" --overlap "$2"; }

# Appends "name Gpoints/s us-per-step us-sending us-waiting checksum".
measure() {
    local name=$1
    shift
    "$@" | awk -v name="$name" '
        /^time/ { step = $4 }
        /^exchange/ { send = $2; wait = $8 }
        /^speed/ { speed = $2 }
        /^checksum/ { sum = $2 }
        END { if (sum == "") exit 1; print name, speed, step, send, wait, sum }' >>"$results"
}

for ((i = 0; i < repetitions; ++i)); do
    measure DiOMP/on diomp minimod on
    measure MPI/on mpi minimod-mpi on
    measure signal/on diomp minimod-signal on
    measure channel/on diomp minimod-channel on
    measure DiOMP/off diomp minimod off
    measure MPI/off mpi minimod-mpi off
    if [ -n "$devices" ]; then
        measure DiOMP/target diomp minimod-target on
        measure MPI/target mpi minimod-target-mpi on
    fi
done

# median FILE-COLUMN NAME
median() { awk -v name="$2" -v c="$1" '$1 == name { print $c }' "$results" | sort -g | awk '{ v[NR] = $1 } END {
    print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2) }'; }
edge() { awk -v name="$2" -v c="$1" '$1 == name { print $c }' "$results" | sort -g | "$3" -n 1; }

echo "minimod ${options[*]}, $place, $repetitions runs in turn"
printf '%-28s %10s %17s %12s %10s %10s\n' variant Gpoints/s '(range)' us/step us-sending us-waiting
for name in DiOMP/on signal/on channel/on MPI/on DiOMP/off MPI/off $devices; do
    case $name in
    */target) label="${name%/*} on devices, overlap on" ;;
    signal/on) label="DiOMP (signals), overlap on" ;;
    channel/on) label="DiOMP (channels), overlap on" ;;
    *) label="${name%/*}, overlap ${name#*/}" ;;
    esac
    printf '%-28s %10s %17s %12s %10s %10s\n' "$label" "$(median 2 $name)" \
        "($(edge 2 $name head)-$(edge 2 $name tail))" "$(median 3 $name)" "$(median 4 $name)" "$(median 5 $name)"
done
awk -v a="$(median 2 DiOMP/on)" -v b="$(median 2 MPI/on)" -v w="$(median 5 DiOMP/on)" -v x="$(median 5 DiOMP/off)" \
    -v s="$(median 3 DiOMP/on)" -v t="$(median 3 DiOMP/off)" 'BEGIN {
    printf "DiOMP / MPI, Gpoints/s:                 %.3f\n", a / b
    printf "DiOMP overlap on / off, time per step:  %.3f\n", s / t
    printf "DiOMP overlap on / off, time waiting:   %.3f\n", (x > 0 ? w / x : 0) }'
if [ -n "$devices" ]; then
    awk -v a="$(median 2 DiOMP/target)" -v b="$(median 2 MPI/target)" -v h="$(median 2 DiOMP/on)" 'BEGIN {
        printf "DiOMP / MPI on devices, Gpoints/s:      %.3f\n", a / b
        printf "DiOMP on devices / by host threads:     %.3f\n", a / h }'
fi
if [ -n "${DIOMP_TEST_HOSTS:-}" ]; then
    traces=$(mktemp -d -p "$bin/..") # TMPDIR is each host's own
    trap 'rm -rf "$results" "$traces"' EXIT
    DIOMP_TRACE=$traces/t.json diomp minimod on >/dev/null
    "${BASH_SOURCE%/*}/trace-overlap.py" "$traces"/t.*.json
fi
if [ "$(awk '{ print $6 }' "$results" | sort -u | wc -l)" != 1 ]; then
    echo "compare-minimod.sh: the checksums differ" >&2
    exit 1
fi
