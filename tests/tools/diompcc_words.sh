#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What diompcc makes of its words: a stand-in for the compiler prints what it is called with, one word a line.
#   diompcc_words.sh BIN_DIR
set -u
bin=${1:?directory of diompcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

cat >"$work/compiler" <<'END'
#!/bin/sh
# Asked for libomp's place, as clang is: answers like gcc, which has none.
case $1 in -print-file-name=*) echo "${1#*=}" && exit ;; esac
printf '<%s>\n' "$@"
END
chmod +x "$work/compiler"
export DIOMP_CC=$work/compiler DIOMP_CXX=$work/compiler

wrong() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}
# expect link|nolink WORDS...: does a call with these words get the library? Are the words passed on, last and whole?
expect() {
    local wanted=$1 got=nolink
    shift
    local output
    output=$("$bin/diompcc" "$@") || wrong "exit status of: $*"
    ! grep -qx '<-ldiomp>' <<<"$output" || got='link'
    [ "$got" = "$wanted" ] || wrong "$got instead of $wanted: $*"
    local passed_on
    passed_on=$(tail -n $# <<<"$output")
    [ $# = 0 ] || [ "$passed_on" = "$(printf '<%s>\n' "$@")" ] || wrong "words changed: $* became $output"
    grep -qx '<-fopenmp>' <<<"$output" || wrong "no -fopenmp: $*"
}

cd "$work" || exit 1
echo '-O2 -c "odd name.c"' >flags
echo '-O2 a.o' >objects

expect link a.c
expect link a.c -o "odd name"
expect link "odd name.c" -DTEXT='"a b"' -D "X=it's" -o prog
expect link a.o b.o -lm
expect link -shared -fPIC a.o -o liba.so
expect link -O2 -MD -MF a.d a.c
expect link -x c -
expect link a.c -Xclang -emit-llvm
expect link -o -c a.c
expect link -Wl,-rpath,/x a.o
expect link @objects
expect link -MMD -MT -c a.c
expect nolink -c a.c
expect nolink a.c -c
expect nolink -S a.c -o a.s
expect nolink -E a.c
expect nolink -M a.c
expect nolink -MM a.c
expect nolink -fsyntax-only a.c
expect nolink -r a.o b.o -o ab.o
expect nolink -x c-header a.h
expect nolink a.h
expect nolink -v
expect nolink -v --help
expect nolink -print-search-dirs
expect nolink @flags
expect nolink

first=$("$bin/diompcc" a.o -lomp | grep -E -m 1 '^<-l(diomp|omp)>$')
[ "$first" = "<-ldiomp>" ] || wrong "libdiomp is not before libomp"

for word in -static -static-pie; do
    "$bin/diompcc" "$word" a.o >/dev/null 2>"$work/err" && wrong "$word accepted"
    grep -q 'linked dynamically' "$work/err" || wrong "$word: no reason given"
done
DIOMP_CC=no-such-compiler "$bin/diompcc" a.c 2>"$work/err" && wrong "a missing compiler accepted"
grep -q 'no-such-compiler is not installed' "$work/err" || wrong "missing compiler: no reason given"
DIOMP_CC="env X=1 $work/compiler" "$bin/diompcc" -c a.c | grep -qx '<-c>' || wrong "a compiler with options"

"$bin/diompcc" --version | head -n 1 | grep -qE '^diompcc \(DiOMP\) [0-9]+\.[0-9]+\.[0-9]+$' || wrong "--version"
"$bin/diompcxx" --version | head -n 1 | grep -q '^diompcxx ' || wrong "diompcxx --version"
shown=$("$bin/diompcc" --showme "odd name.c" -D "X=it's")
[ "$(eval "$shown" | tail -n 3)" = $'<odd name.c>\n<-D>\n<X=it\'s>' ] || wrong "--showme cannot be pasted: $shown"
[[ $("$bin/diompcc" --showme:compile) == "-fopenmp -I"* ]] || wrong "--showme:compile"
[[ $("$bin/diompcc" --showme:link) == *"-ldiomp"* ]] || wrong "--showme:link"
# MPICH's names; nothing runs.
cat >"$work/never" <<'END'
#!/bin/sh
case $1 in --version | -print-file-name=*) exit ;; esac
touch "$0.ran"
END
chmod +x "$work/never"
for words in "-show" "-show a.c" "-show -c a.c" "-compile-info" "-compile_info" "-link-info" "-link_info" "--showme a.c"; do
    # shellcheck disable=SC2086 # a list of words
    shown=$(DIOMP_CC=$work/never "$bin/diompcc" $words) || wrong "exit status of $words"
    case $words in
    *compile?info) same=$("$bin/diompcc" --showme:compile) ;;
    *link?info) same=$("$bin/diompcc" --showme:link) ;;
    *) same="$work/never -fopenmp -I" ;;
    esac
    [[ $shown == "$same"* ]] || wrong "$words printed $shown"
    [[ $words == *compile?info || $words == *" -c "* ]] || [[ $shown == *-ldiomp* ]] || wrong "$words does not link: $shown"
    [[ $words != *" -c "* ]] || [[ $shown != *-ldiomp* ]] || wrong "$words links: $shown"
done
[ ! -e "$work/never.ran" ] || wrong "-show ran the compiler"

# The help is DiOMP's, for each tool, also without a compiler; further arguments do not matter.
for tool in diompcc diompcxx diompfc; do
    [ -e "$bin/$tool" ] || continue
    for words in "--help" "-help" "--dpu --help" "--help a.c"; do
        # shellcheck disable=SC2086 # a list of words
        DIOMP_FC=no-such-compiler DIOMP_CC=no-such-compiler DIOMP_CXX=$work/never "$bin/$tool" $words >"$work/help" ||
            wrong "exit status of $tool $words"
        for option in --dpu --showme -show --showme:compile --showme:link --help --version; do
            grep -qE "^  $option " "$work/help" || wrong "$tool $words lacks $option"
        done
    done
    head -n 1 "$work/help" | grep -q "^Usage: $tool " || wrong "$tool --help: usage"
done
[ ! -e "$work/never.ran" ] || wrong "--help ran the compiler"
# Each option of the script is in its help.
sed -n '/^show=no/,/^done/s/^    \(-[-a-z_:| ]*\)).*/\1/p' "$bin/diompcc" | tr -d ' ' | tr '|' '\n' | while read -r option; do
    [ "$option" = -help ] || "$bin/diompcc" --help | grep -qE -- "(^|[ ,])$option([ ,]|\$)" || echo "$option"
done >"$work/missing"
sed -n '/^show=no/,/^done/s/^    \(-.*\)).*/\1/p' "$bin/diompcc" | grep -q -- --dpu || wrong "options of the script not found"
[ ! -s "$work/missing" ] || wrong "options that --help lacks: $(tr '\n' ' ' <"$work/missing")"

# Called through a link, and from a directory with a space.
mkdir -p "$work/a prefix/bin" "$work/a prefix/lib" "$work/a prefix/include" "$work/links"
cp "$bin/diompcc" "$work/a prefix/bin/"
touch "$work/a prefix/lib/libdiomp.so"
ln -s "$work/a prefix/bin/diompcc" "$work/links/mycc"
"$work/links/mycc" a.o | grep -qx "<-L$work/a prefix/lib>" || wrong "called through a link"
(PATH="$work/links:$PATH" && mycc a.o) | grep -qx "<$work/a prefix/lib>" || wrong "called through PATH"

[ "$failures" = 0 ] && echo "diompcc_words: ok"
exit "$failures"
