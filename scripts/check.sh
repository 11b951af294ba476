#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What must hold before a change lands: `make check`, and CI through .ci/run; with --all, what must hold before a release.
#
#   scripts/check.sh [--all]            all parts
#   scripts/check.sh [--all] dev asan   only these
#
# Without --all: no tests with the label "thorough", of the sanitizers' tests those of the core, where a conduit has tests
# with two and with four ranks those with four, headers not compiled alone, and neither gcc nor 64-bit Arm.
# Each part's output goes to the screen and to build/check/PART.log. A part that is not a set of tests counts as one.
# The last line is "N passed, N failed" (and ", N skipped"); the exit status is 0 only if nothing failed.
set -u
cd "$(dirname "$0")/.." || exit 1

declare -A meaning=(
    [format]="clang-format"
    [includes]="include directions; with --all: headers compile alone"
    [words]="words that were given up; measures of the structure"
    [dev]="build with clang, tests"
    [gcc]="build the core with gcc, its unit and rank tests"
    [aarch64]="build for 64-bit Arm, its programs under an emulator"
    [tidy]="clang-tidy"
    [asan]="address and undefined-behaviour sanitizers: unit and rank tests"
    [tsan]="thread sanitizer: unit and rank tests"
)
all=
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
parts=("$@")
# The quick ones first: they fail within seconds.
if [ ${#parts[@]} = 0 ]; then
    parts=(format includes words dev asan tsan tidy)
    [ -z "$all" ] || parts=(format includes words dev gcc aarch64 tidy asan tsan)
fi
core='^(base|conduit_(contract|faults|registration|tcp)|messaging|memory|heap|page_return|rma|sync|group|collective|nccl|runtime)_?'

smaller_jobs='^conduit_contract[.](shm|tcp|tcp_encrypted)[.]np2$'

jobs=${JOBS:-$(nproc)}
out=build/check
mkdir -p "$out"
rm -f "$out"/*
# Sources that are compiled as one.
batch=16
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    # What one clone has compiled, another need not compile again.
    export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
    # Without these ccache does not know a compilation with precompiled headers again; our sources use no __TIME__.
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
fi

# configure PRESET [OPTION...]
configure() {
    cmake --preset "$1" "${launcher[@]}" "${@:2}" >"$out/configure-$1.txt" 2>&1 || { cat "$out/configure-$1.txt"; false; }
}

# Also LLVM 22, where scripts/setup.sh --llvm 22 has put it.
llvm_versions() {
    if [ -n "$(scripts/llvm-toolchain.sh --llvm 22 --version)" ] &&
        [ -e "$(scripts/fetch-llvm.sh --llvm 22 --folder)/version" ]; then
        echo "19;22"
    else
        echo "19"
    fi
}

# build_tests PRESET
build_tests() {
    local batch=$batch targets=() options=()
    # gcc sees each file alone: one that lacks an include does not compile.
    [ "$1" != gcc ] || batch=0
    case $all$1 in asan | tsan) targets=(--target core_tests) ;; esac
    # Line tables are enough for a backtrace, and take less time.
    local flags="-O2 -g1 -DNDEBUG"
    [ "$1" != dev ] || options=("-DDIOMP_LLVM_VERSIONS=$(llvm_versions)" -DCMAKE_C_FLAGS_RELWITHDEBINFO="$flags"
        -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$flags")
    configure "$1" -DDIOMP_BATCH="$batch" "${options[@]}" && cmake --build --preset "$1" -j "$jobs" "${targets[@]}"
}

# Tests of time limits, faults and launchers may fail because the machine does something else for seconds. What failed
# runs once more; the table names every test that needed that, so that none hides there.
# Most tests wait now and then, so that twice as many go on as there are cores; programs of several ranks count as two.
run_tests() {
    local which=()
    if [ -z "$all" ]; then
        which=(-LE '^thorough$')
        case $1 in asan | tsan) which+=(-R "$core" -E "$smaller_jobs") ;; esac
    fi
    ctest --preset "$1" -j $((2 * jobs)) "${which[@]}" --output-junit "$PWD/$out/$1.xml" && return
    echo "== $1: what failed, once more"
    # By name: ctest's --rerun-failed goes by numbers, which are others without the choice of tests above.
    local failed
    failed=$(sed 's/^[0-9]*://; s/[.+*()|]/[&]/g' "build/$1/Testing/Temporary/LastTestsFailed.log" | paste -sd '|')
    ctest --preset "$1" -R "^($failed)\$" --output-junit "$PWD/$out/$1-again.xml"
}

# What other machines may lack; status 77 says that the part was skipped.
has_aarch64() {
    local missing=
    [ -e "$(scripts/dpu-sysroot.sh --folder)/usr/lib/llvm-19/lib/libomp.so" ] || missing+=" scripts/dpu-sysroot.sh"
    command -v aarch64-linux-gnu-ld >/dev/null || missing+=" binutils-aarch64-linux-gnu"
    command -v qemu-aarch64-static >/dev/null || missing+=" qemu-user-static"
    [ -z "$missing" ] || { echo "skipped: needs$missing" && return 77; }
}

check_tidy() {
    configure dev -B build/tidy -DDIOMP_BATCH="$batch" && scripts/tidy-check.py build/tidy
}

# What a part compiles: its tests, or for clang-tidy everything.
build_part() {
    case $1 in
    tidy) check_tidy ;;
    aarch64) has_aarch64 && build_tests "$1" ;;
    dev | gcc | asan | tsan) build_tests "$1" ;;
    esac
}

# One part after the other, behind what else runs: while tests wait, the next part compiles. The status of each goes to
# PART.built.
build_all() {
    renice -n 10 "$BASHPID" >/dev/null
    for part in "${parts[@]}"; do
        build_part "$part" >"$out/$part.build" 2>&1
        echo $? >"$out/$part.status"
        mv "$out/$part.status" "$out/$part.built"
    done
}

# Waits until build_all has built the part, and returns its status.
wait_for_build() {
    until [ -e "$out/$1.built" ]; do
        kill -0 "$builder" 2>/dev/null || [ -e "$out/$1.built" ] || return 1
        sleep 0.2
    done
    cat "$out/$1.build"
    return "$(cat "$out/$1.built")"
}

run_part() {
    case $1 in
    format) scripts/format-check.sh ;;
    includes) scripts/include-check.py ${all:+--compile} ;;
    words) scripts/words-check.py && scripts/house-check.py ;;
    tidy) wait_for_build "$1" ;;
    aarch64 | dev | gcc | asan | tsan) wait_for_build "$1" && run_tests "$1" ;;
    *)
        echo "check.sh: unknown part '$1' (known: ${!meaning[*]})"
        return 2
        ;;
    esac
}

# Names of the tests that failed at first and passed alone.
needed_two() {
    [ -s "$out/$1-again.xml" ] || return
    sed -n 's/.*<testcase name="\([^"]*\)".* status="run".*/\1/p' "$out/$1-again.xml" | tr '\n' ' '
}

# Prints one attribute of the <testsuite> line that ctest writes.
junit_count() { tr '[:space:]' ' ' <"$1" | sed -n "s/^[^<]*<?xml[^>]*> *<testsuite [^>]* $2=\"\([0-9]*\)\".*/\1/p"; }

# A process group of its own, so that its end takes the compilers along.
set -m
build_all &
builder=$!
set +m
trap 'kill -- -$builder 2>/dev/null' EXIT

passed=0
failed=0
skipped=0
table=
for part in "${parts[@]}"; do
    echo "== $part: ${meaning[$part]:-?}"
    began=$EPOCHREALTIME
    run_part "$part" 2>&1 | tee "$out/$part.log"
    status=${PIPESTATUS[0]}
    seconds=$(awk "BEGIN { printf \"%.0f\", $EPOCHREALTIME - $began }")
    verdict=ok
    [ "$status" = 0 ] || verdict=FAILED
    counts=
    if [ "$status" = 77 ]; then
        verdict=skipped
        skipped=$((skipped + 1))
    elif [ -s "$out/$part.xml" ]; then
        tests=$(junit_count "$out/$part.xml" tests)
        failures=$(junit_count "$out/$part.xml" failures)
        left_out=$(junit_count "$out/$part.xml" skipped)
        twice=$(needed_two "$part")
        [ ! -s "$out/$part-again.xml" ] || failures=$(junit_count "$out/$part-again.xml" failures)
        passed=$((passed + tests - failures - left_out))
        failed=$((failed + failures))
        skipped=$((skipped + left_out))
        counts="$tests tests, $failures failed, $left_out skipped"
        [ -z "$twice" ] || counts+="; passed only the second time: $twice"
        # ctest failed for another reason, such as a test program that is missing.
        [ "$status" = 0 ] || [ "$failures" != 0 ] || failed=$((failed + 1))
    elif [ "$status" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    table+=$(printf '%-9s %-7s %5s s  %s' "$part" "$verdict" "$seconds" "$counts")$'\n'
done

printf '\n%s' "$table"
summary="$passed passed, $failed failed"
[ "$skipped" = 0 ] || summary+=", $skipped skipped"
echo "$summary" | tee "$out/summary.txt"
[ "$failed" = 0 ]
