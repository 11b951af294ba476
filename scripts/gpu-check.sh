#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests on a machine that has a GPU and need have nothing else: no compiler, no CUDA, no network. docs/gpu.md explains it.
#
#   scripts/gpu-check.sh bundle [FOLDER]   here: builds what the other machine needs (FOLDER: build/gpu-bundle)
#   scripts/gpu-check.sh run [FOLDER]      there: runs all tests; writes gpu-check.txt and gpu-check.json into $OUT or .
#   scripts/gpu-check.sh try [FOLDER]      here: runs it in a root folder that holds the bundle and a busybox, no more
#
# `run` takes 9 minutes at most (GPU_CHECK_SECONDS). Its status is 0 if nothing failed; whether a GPU was tested at all
# says the line "verdict".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${2:-$here/../build/gpu-bundle}
case ${1:-} in
bundle | try) exec bash "$here/gpucheck/$1.sh" "$folder" ;;
run)
    [ -e "$folder/run.sh" ] || { echo "gpu-check.sh: there is no bundle in $folder: scripts/gpu-check.sh bundle" >&2 && exit 2; }
    exec sh "$folder/run.sh"
    ;;
*) sed -n '/^#   /s/^#   //p' "$0" >&2 && exit 2 ;;
esac
