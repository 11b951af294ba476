#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs for AddressSanitizer with global memory; the library is not compiled for it.
#   address_sanitizer.sh BIN_DIR TESTS_DIR COMPILER
set -u
bin=${1:?directory of diompcc}
tests=${2:?directory of memory and support}
export DIOMP_CC=${3:?compiler} DIOMP_SEGMENT_SIZE=256M OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

"$DIOMP_CC" -fsanitize=address -x c - -o "$work/empty" <<<"int main(void) { return 0; }" 2>/dev/null && "$work/empty" ||
    { echo "skipped: $DIOMP_CC does not compile for AddressSanitizer here"; exit 77; }
"$bin/diompcc" -g -O1 -fsanitize=address -I "$tests" "$tests/memory/address_sanitizer_test.c" -o "$work/app" || exit 1

failed() {
    echo "FAILED: $1"
    cat "$work/out"
    failures=$((failures + 1))
}

# run [NAME=VALUE]... RANKS [ARGUMENT]
run() {
    local settings=()
    while [[ $1 == *=* ]]; do settings+=("$1"); shift; done
    env "${settings[@]}" "$bin/diomp-run" -n "$1" --bind-to none --timeout 60 --tag-output "$work/app" "${@:2}" >"$work/out" 2>&1
}

for settings in A=1 DIOMP_CONDUIT=tcp "DIOMP_NODE_SIZE=1 DIOMP_NETWORK=tcp"; do
    for ranks in 1 2 4; do
        # shellcheck disable=SC2086 # several settings
        run $settings $ranks || failed "a program without mistakes, $ranks ranks, $settings"
    done
done

# reported HOW WORDS [LINE]: rank 1 reports the mistake, with the place in the program.
reported() {
    for settings in A=1 DIOMP_CONDUIT=tcp; do
        if run $settings 2 "$1"; then
            failed "$1 is not reported ($settings)"
        elif ! grep -q "^\[1\].*AddressSanitizer: $2" "$work/out" || grep -q "^\[0\].*AddressSanitizer" "$work/out" ||
            ! grep -q "^\[1\].* in $3 .*address_sanitizer_test.c" "$work/out"; then
            failed "$1 ($settings)"
        fi
    done
}
for how in overflow row underflow; do reported $how use-after-poison err; done
# gcc's names what is wrong at the first byte of a range, which may be right.
for how in put get signal; do reported $how '\(use-after-poison\|unknown-crash\)' err; done
reported freed use-after-poison main
reported source heap-buffer-overflow err

# Poisoning can be turned off, as for other allocators.
ASAN_OPTIONS=allow_user_poisoning=0 run 2 overflow || failed "allow_user_poisoning=0"

[ "$failures" = 0 ] && echo "address_sanitizer: ok"
exit "$failures"
