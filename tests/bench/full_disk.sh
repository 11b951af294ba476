#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Results that a full disk refuses: a message with the path and the reason, and a status. Usage: full_disk.sh DIOMP_BENCH
set -u

bench=$1
said=$(mktemp)
trap 'rm -f "$said"' EXIT
few=(--sizes 8 --min-time 0.0005 --repeat 3)

refuses() { # WORDS COMMAND...
    local words=$1
    shift
    if "$@" 2>"$said"; then
        echo "status 0 of: $*"
        exit 1
    fi
    if ! grep -qF "$words" "$said"; then
        echo "no '$words' of: $*"
        cat "$said"
        exit 1
    fi
}

to_full_output() { "$@" >/dev/full; }

refuses "cannot write '/dev/full': No space left on device" "$bench" barrier "${few[@]}" --json /dev/full
refuses "cannot write '/dev/full': No space left on device" "$bench" barrier "${few[@]}" --csv /dev/full
refuses "cannot write to standard output: No space left on device" to_full_output "$bench" barrier "${few[@]}"
