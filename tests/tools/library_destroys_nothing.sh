#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Threads of the runtime and of the program use the library while the process ends, so none of its static objects may have a
# destructor: it would be registered by __cxa_atexit. Usage: library_destroys_nothing.sh LIBRARY
set -euo pipefail

library=$1
symbols=$(nm -D --undefined-only "$library")
grep -q '__cxa_thread_atexit' <<<"$symbols" || { echo "nm shows no import of $library that is known to be there"; exit 1; }
if grep -w '__cxa_atexit' <<<"$symbols"; then
    echo "a static object of $library has a destructor. Who registers it:"
    objdump -d --no-show-raw-insn -C "$library" | awk '/^[0-9a-f]+ </ { name = $0 } /__cxa_atexit@plt/ && !/^[0-9a-f]+ </ { print "  " name }'
    exit 1
fi
