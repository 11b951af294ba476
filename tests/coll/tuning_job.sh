#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Jobs with a tuning file: each algorithm that diomp-info lists is taken where a rule asks for it,
# as the log shows; mistakes in the file end all ranks with the same sentence.
#   tuning_job.sh BIN_DIR TUNED_CALLS
set -u
bin=${1:?directory of diomp-run}
calls=${2:?program tuned_calls}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rules=$work/rules.txt
failures=0
unset DIOMP_COLL_TUNING DIOMP_NODE_SIZE DIOMP_LOG DIOMP_ERRORS

wrong() {
    echo "FAILED: $1"
    head -40 "$work/out" | sed 's/^/    | /'
    failures=$((failures + 1))
}

# job NODE_SIZE LOG PROGRAM...: the job's output in out, its status in `status`.
job() {
    local node_size=$1 log=$2
    shift 2
    env DIOMP_NODE_SIZE="$node_size" DIOMP_NETWORK=tcp DIOMP_LOG="$log" DIOMP_TIMEOUT=60 \
        "$bin/diomp-run" -n 4 --bind-to none --timeout 60 "$@" >"$work/out" 2>&1
    status=$?
}

# What the log says of an algorithm.
shown() {
    case $1/$2 in
    node/zero_copy) echo 'zero copy, ' ;;
    node/*) echo "algorithm $2\$" ;;
    nodes/with_agreement) echo 'data travels with the agreement' ;;
    nodes/*) echo "between nodes: $2\$" ;;
    esac
}

export DIOMP_COLL_TUNING=$rules
: >"$rules"
"$bin/diomp-info" --coll-tuning >"$work/list" || wrong "diomp-info --coll-tuning"
num_algorithms=0
while read -r collective level algorithm _; do
    num_algorithms=$((num_algorithms + 1))
    # With most of these sizes the built-in rules take another algorithm, if there is one.
    case $level/$algorithm in
    node/inline_data) bytes=64 ;;
    nodes/with_agreement | */bruck) bytes=4096 ;;
    nodes/reduce_scatter_allgather) bytes=16384 ;;
    nodes/recursive_doubling) bytes=262144 ;;
    *) bytes=8192 ;;
    esac
    node_size=2
    [ "$level" = node ] && node_size=4
    [ "$collective/$algorithm" = alltoall/bruck ] && node_size=1
    echo "$collective $level $algorithm" >"$rules"
    job "$node_size" coll:debug,group:debug "$calls" "$collective" "$bytes"
    [ "$status" = 0 ] || wrong "$collective $level $algorithm: status $status"
    # Reductions between nodes have no other algorithm than the tree after the agreement.
    [ "$collective/$level/$algorithm" = reduce/nodes/binomial_tree ] &&
        { grep -q 'data after the agreement' "$work/out" || wrong "reduce: with the agreement"; } &&
        continue
    grep -q "$(shown "$level" "$algorithm")" "$work/out" ||
        wrong "$collective $level $algorithm: not taken"
done < <(sed -n '/^algorithms/,$p' "$work/list" | tail -n +2)
[ "$num_algorithms" -ge 30 ] || wrong "only $num_algorithms algorithms listed"

# A rule for other sizes, or for more members, changes nothing.
echo 'bcast node staged members=5- ' >"$rules"
job 4 coll:debug,group:debug "$calls" bcast 64
grep -q 'algorithm inline_data$' "$work/out" || wrong "a rule for more members was taken"

# Only rank 0's file counts.
cat >"$work/other.sh" <<'END'
#!/bin/bash
if [ "$DIOMP_RANK" != 0 ]; then export DIOMP_COLL_TUNING=/nonexistent; fi
exec "$@"
END
chmod +x "$work/other.sh"
echo 'bcast node staged' >"$rules"
job 4 coll:debug,group:debug "$work/other.sh" "$calls" bcast 64
[ "$status" = 0 ] || wrong "another rank's file: status $status"
[ "$(grep -c 'algorithm staged$' "$work/out")" -ge 4 ] || wrong "not all ranks have rank 0's rules"

# Mistakes: file, line and remedy, on all ranks; by default the job ends.
printf 'bcast node staged\nbcast node ring\n' >"$rules"
job 2 warn "$calls" bcast 64
[ "$status" != 0 ] || wrong "a job with a wrong file starts"
grep -q "rules.txt, line 2: bcast at level node has no algorithm 'ring'" "$work/out" ||
    wrong "the sentence"
grep -q 'use one of inline_data, staged, zero_copy' "$work/out" || wrong "the remedy"
DIOMP_ERRORS=return job 2 warn "$calls" bcast 64
[ "$status" != 0 ] || wrong "a job with a wrong file starts with DIOMP_ERRORS=return"
export DIOMP_COLL_TUNING=$work/missing.txt
job 1 warn "$calls" bcast 64
[ "$status" != 0 ] || wrong "a job without its file starts"
grep -q "missing.txt" "$work/out" || wrong "the missing file is not named"
"$bin/diomp-run" -n 1 "$calls" bcast 64 >"$work/out" 2>&1 && wrong "one rank starts without its file"
"$bin/diomp-info" --coll-tuning >"$work/out" 2>&1 && wrong "diomp-info accepts a missing file"

[ "$failures" = 0 ] && echo "tuning_job: $num_algorithms algorithms taken"
exit $((failures > 0))
