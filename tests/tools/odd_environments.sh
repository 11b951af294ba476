#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Whatever a tool finds, it ends with a sentence and a status, and never by an exception.
#   odd_environments.sh BIN_DIR
set -u
bin=$(readlink -f "${1:?directory of the tools}")
export bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect STATUS PATTERN SCRIPT: bash ends with STATUS, and PATTERN (empty: anything) is on some line of its errors.
expect() {
    timeout 60 bash -c "$3" >"$work/out" 2>"$work/err" </dev/null
    local got=$?
    if [ "$got" != "$1" ] || { [ -n "$2" ] && ! grep -qE "$2" "$work/err"; } || grep -q 'terminate called' "$work/err"; then
        echo "FAILED: status $got instead of $1, or no '$2': $3"
        sed 's/^/    | /' "$work/err"
        failures=$((failures + 1))
    fi
}
# inside STATUS PATTERN SCRIPT: the same in a mount namespace, where the script may mount.
inside() {
    if unshare --user --map-root-user --mount true 2>/dev/null; then
        expect "$1" "$2" "unshare --user --map-root-user --mount bash -c '$3'"
    else
        echo "skipped, no mount namespaces here: $3"
    fi
}

deviced='DIOMP_TOKEN=x $bin/diomp-deviced --port 0 --print-port --end-with-parent'
# A service keeps images in memory and needs no folder: it prints its port wherever TMPDIR points.
starts="coproc $deviced; "'read -r port <&"${COPROC[0]}"; kill "$COPROC_PID"; [ "$port" -gt 0 ]'
expect 0 '' "export TMPDIR=/no/such/folder; $starts"
expect 0 '' "export TMPDIR=/dev/null; $starts"
inside 0 '' "mount -t tmpfs -o ro none /mnt; export TMPDIR=/mnt; $starts"

# Output that cannot be written.
expect 1 'diomp-info: .*' '$bin/diomp-info --settings-markdown >/dev/full'
expect 1 'diomp-info: .*' '$bin/diomp-info --settings >/dev/full'

# No /proc, no current directory, no home, no PATH.
inside 0 '' 'mount -t tmpfs none /proc; $bin/diomp-run -n 2 /bin/true'
inside 0 '' 'mount -t tmpfs none /sys; $bin/diomp-run -n 2 /bin/true'
inside 0 '' 'mount -t tmpfs none /proc; $bin/diomp-info --settings'
expect 0 '' 'cd "$(mktemp -d)"; rmdir "$PWD"; $bin/diomp-run -n 2 /bin/true'
expect 127 'cannot find .true. in PATH' 'env -i $bin/diomp-run -n 1 true'
expect 2 'diomp-run: .*cannot read /: Is a directory' '$bin/diomp-run --hostfile / true'

# Numbers out of range.
expect 2 'diomp-run: ' '$bin/diomp-run -n 99999999999999999999 true'
expect 2 'diomp-run: ' '$bin/diomp-run -n 1 --timeout 1e999 true'
expect 2 'diomp-run: ' '$bin/diomp-run --hosts a:99999999999999999999 true'
expect 2 'diomp-run: ' '$bin/diomp-run --remote-devices a:99999999999999999999 true'
expect 1 'diomp-deviced: ' "$deviced --devices 99999999999999999999"
expect 1 'diomp-deviced: ' "$deviced --memory 99999999999999999999999999G"
expect 1 "diomp-deviced: .*--memory 100000T" "$deviced --memory 100000T"
expect 105 "" "\$bin/diomp-bench --min-time nan barrier"
expect 0 'rate: not measured with 257 threads' '$bin/diomp-run -n 2 $bin/diomp-bench --threads 257 rate'
if [ -x "$bin/diomp-sim" ]; then
    expect 1 'cannot be written' '$bin/diomp-sim --nodes 2 --collectives barrier >/dev/full'
    expect 1 'cannot have' '$bin/diomp-sim --nodes 4 --sizes 1TiB --collectives allgather'
fi
expect 1 'diomp-run: ' '$bin/diomp-run --agent </'
expect 1 'diomp-run: ' 'printf "diomp-run 99999999999999999999\n" | $bin/diomp-run --agent'

# Empty values and input that is nested too deeply.
expect 2 'diomp-run: .*--output-dir' '$bin/diomp-run -n 1 --output-dir "" true'
expect 1 'diomp-deviced: .*--listen' "$deviced --listen ''"
expect 1 'diomp-trace: .* is the output, too' \
    'f=$(mktemp); $bin/diomp-trace -o "$f" "$f"; s=$?; rm "$f"; exit $s'
expect 1 'diomp-trace: .* is no complete trace' \
    'yes "[" | head -n 100000 | tr -d "\n" >/tmp/nested.$$; $bin/diomp-trace -o /dev/null /tmp/nested.$$; s=$?; rm /tmp/nested.$$; exit $s'

[ "$failures" = 0 ] && echo "odd_environments: ok"
exit "$failures"
