#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What diomp-info says, and what --doctor finds when something is wrong.
#   diomp_info.sh BIN_DIR
set -u
bin=${1:?directory of diomp-info}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
unset DIOMP_SEGMENT_BASE DIOMP_SEGMENT_SIZE DIOMP_LOG

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
        env DIOMP_NODE_SIZE=2 UCX_TLS=tcp "$bin/diomp-run" -n 4 "$bin/diomp-info"
fi
expect 0 'DIOMP_SEGMENT_SIZE = 64 MiB  \(set\)' env DIOMP_SEGMENT_SIZE=64M "$bin/diomp-info"
expect 0 '^ +0 .* 64 MiB' env DIOMP_SEGMENT_SIZE=64M "$bin/diomp-info"
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

expect 0 '^A job can run here' "$bin/diomp-info" --doctor
expect 0 '"check": "address window"' "$bin/diomp-info" --doctor --json
python3 -m json.tool "$work/out" >/dev/null || wrong "JSON of the doctor"
expect 0 '^note +processors' "$bin/diomp-info" --doctor --ranks 4096
expect 0 '^note +settings +DIOMP_SEGMNT_SIZE is set' env DIOMP_SEGMNT_SIZE=1G "$bin/diomp-info" --doctor
expect 1 '^BAD +settings +DIOMP_LOG=loud' env DIOMP_LOG=loud "$bin/diomp-info" --doctor
expect 1 '^BAD +address window' bash -c "ulimit -v 4000000; '$bin/diomp-info' --doctor"
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
