#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The demo: a seismic wave on 4 ranks that share one address space, checked against one rank, drawn. Its halos go from
# device to device where devices are part of the build.
#   scripts/demo.sh BUILD_DIR [minimod options]      what `make demo` runs after the build
# Pictures and data go to demo-output/ in the current folder (DEMO_OUTPUT names another).
set -eu

if [ $# -lt 1 ] || [ ! -x "$1/bin/minimod" ] || [ ! -x "$1/bin/diomp-run" ]; then
    echo "usage: demo.sh BUILD_DIR [minimod options]; BUILD_DIR holds bin/minimod and bin/diomp-run (make demo builds them)" >&2
    exit 2
fi
build=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${DEMO_OUTPUT:-demo-output}
mkdir -p "$out"

# One thread per rank unless the user says otherwise: the ranks are the parallelism here.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# Steps in target regions if that was built: on LLVM's host devices unless DIOMP_GPU_ARCHS named GPUs.
program=minimod
place="4 ranks"
if [ -x "$build/bin/minimod-target" ]; then
    program=minimod-target
    place="4 ranks with a device each"
fi
echo "Minimod on $place: diomp-run -n 4 $program --grid 272 160 152 --steps 600 ... --check"
"$build/bin/diomp-run" -n 4 -- "$build/bin/$program" --grid 272 160 152 --steps 600 --receivers 160 \
    --check --progress on --out "$out" "$@"

# Debian's interpreter has Debian's matplotlib; another python3 may come first in the PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import matplotlib, numpy' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "demo.sh: no python3 with matplotlib and numpy found, so no pictures (apt-get install python3-matplotlib)" >&2
    exit 1
fi
echo "Pictures:"
"$python" "$here/plot-wavefield.py" "$out" | sed 's/^/  /'
