#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# diompcc and diompcxx give the plugin to the compiler that can load it, and to no other.
#   driver.sh SOURCE_DIR BIN_DIR PLUGIN
set -eu
source=${1:?} bin=${2:?} plugin=${3:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
wrong() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

# A prefix of its own; the library is not needed to compile.
mkdir "$work/bin" "$work/lib"
cp "$bin/diompcc" "$bin/diompcxx" "$work/bin/"
ln -s "$source/include" "$work/include"
touch "$work/lib/libdiomp.so"
echo '#include <diomp.h>
void share(double *p) {
#pragma ompx target device_bcast(p)
}' >"$work/wrong.c"
cp "$work/wrong.c" "$work/wrong.cpp"
cd "$work"
unset DIOMP_CC DIOMP_CXX

bin/diompcc -c wrong.c -o wrong.o || wrong "without the plugin the program does not compile"
cp "$plugin" lib/libdiomp-pragma.so
for compiler in diompcc:wrong.c diompcxx:wrong.cpp; do
    if bin/${compiler%:*} -c "${compiler#*:}" -o no.o 2>messages; then
        wrong "$compiler: no error"
    fi
    grep -q "${compiler#*:}:3:34: error: 'p' is a pointer: it needs an array section, as in p\[0:n\]" messages ||
        { wrong "$compiler: message" && cat messages; }
done
# Linking alone, and what compiles nothing, is quiet.
echo 'int main(void) { return 0; }' >main.c
bin/diompcc -Werror -c main.c -o main.o
bin/diompcc -Werror -### main.o -o main 2>&1 | grep -E 'warning|error' && wrong "linking alone is not quiet"
bin/diompcc -Werror -E main.c >preprocessed || wrong "-E"

printf '#!/bin/sh\ncase $1 in --version) echo "Some clang version 18.1.8" ;; *) printf "<%%s>\\n" "$@" ;; esac\n' >other
chmod +x other
if DIOMP_CC=$work/other bin/diompcc -c main.c | grep -q fplugin; then
    wrong "another clang gets the plugin"
fi
if command -v gcc >/dev/null; then
    DIOMP_CC=gcc bin/diompcc -Wall -c wrong.c -o other.o 2>messages || { wrong "gcc" && cat messages; }
    grep -q 'ignoring .#pragma ompx target' messages || wrong "gcc knows the pragma?"
fi
[ "$failures" = 0 ] && echo "driver: ok"
exit "$failures"
