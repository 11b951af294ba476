#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes the environment that the package for Python is built and tested in: Debian's Python and NumPy, and from the Python
# registry what Debian 12 has no package of. Debian's pip installs nothing into the system, hence a folder of its own.
#
#   scripts/python-env.sh            makes build/python-env unless it is there; prints its interpreter
#   scripts/python-env.sh --bench    the same with Numba, for bench/compare-kernels
set -eu

packages="nanobind==3.1.0 scikit-build-core==1.1.2"
[ "${1:-}" != --bench ] || packages="$packages numba==0.68.1"
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$here/build/python-env

fail() {
    echo "python-env.sh: $1" >&2
    exit 1
}

case "$(cat "$folder/version" 2>/dev/null)" in "$packages"*) ready=yes ;; *) ready= ;; esac
[ -z "$ready" ] || { echo "$folder/bin/python3" && exit; }
# Debian's interpreter has Debian's NumPy; another python3 may come first in the PATH.
python=
for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import numpy, venv, ensurepip' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "no python3 with NumPy and venv found (packages python3-numpy, python3-venv)"
rm -rf "$folder"
mkdir -p "$here/build"
"$python" -m venv --system-site-packages "$folder"
# shellcheck disable=SC2086 # a list of words
"$folder/bin/python3" -m pip install --quiet --disable-pip-version-check $packages >"$folder/log" 2>&1 || {
    tail -n 5 "$folder/log" >&2
    fail "the packages could not be fetched from the Python registry; the lines above say why"
}
echo "$packages" >"$folder/version"
echo "$folder/bin/python3"
