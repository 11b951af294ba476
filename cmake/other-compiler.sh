#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs a command of CMake's with another compiler; see DiompRegions.cmake.
#   other-compiler.sh OLD NEW COMMAND...    in COMMAND, each word that is OLD becomes NEW
set -eu
old=$1
new=$2
shift 2
for word in "$@"; do
    shift
    [ "$word" != "$old" ] || word=$new
    set -- "$@" "$word"
done
exec "$@"
