#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes a wheel of the package with a libdiomp that exists already, installs it into a folder of its own, and runs a program
# with it; then that what is missing is said.
#   wheel.sh PYTHON SOURCE_DIR DIOMP_DIR DIOMP_RUN     DIOMP_DIR: a build folder or an installed prefix
set -eu
python=${1:?} source=${2:?} diomp=${3:?} run=${4:?}
unset PYTHONPATH
"$python" -c 'import scikit_build_core' 2>/dev/null || { echo "skipped: no scikit-build-core (scripts/python-env.sh)" && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/diomp-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Without isolation: what the build needs is in the environment, and tests fetch nothing.
wheel() {
    DIOMP_DIR=$1 "$python" -m pip wheel "$source" --no-deps --no-build-isolation --no-index \
        --disable-pip-version-check -w "$work/wheels" >"$work/log" 2>&1
}

if wheel "$work/nothing"; then
    echo "a wheel without a libdiomp" && exit 1
fi
grep -q "no libdiomp found: install DiOMP" "$work/log" || { cat "$work/log" && exit 1; }

wheel "$diomp" || { cat "$work/log" && exit 1; }
"$python" -m pip install --no-deps --no-index --disable-pip-version-check --quiet --target "$work/site" "$work"/wheels/diomp-*.whl
for file in __init__.py py.typed _core.pyi; do
    [ -e "$work/site/diomp/$file" ] || { echo "not in the wheel: $file" && exit 1; }
done
cat >"$work/program.py" <<'END'
import numpy, diomp
cells = diomp.zeros(2, int)
diomp.put((diomp.rank() + 1) % diomp.num_ranks(), cells[:1], diomp.rank() + 1)
diomp.barrier()
total = numpy.zeros(2, int)
diomp.allreduce(total, cells)
assert total[0] == sum(range(diomp.num_ranks() + 1)), total
END
cd "$work"
PYTHONPATH=$work/site "$run" -n 2 --timeout 60 -- "$python" "$work/program.py"
PYTHONPATH=$work/site "$python" "$work/program.py"

# A library that is no longer there is a sentence, not only the loader's words.
"$python" - "$work/site" <<'END'
import pathlib, re, sys
for module in pathlib.Path(sys.argv[1], "diomp").glob("_core*.so"):
    code = module.read_bytes()
    missing, num_names = re.subn(rb"libdiomp\.so\.\d\0", b"libdiomp.so.x\0", code)
    assert num_names == 1
    module.write_bytes(missing)
END
if PYTHONPATH=$work/site "$python" -c 'import diomp' 2>"$work/err"; then
    echo "imported without its library" && exit 1
fi
grep -q "set LD_LIBRARY_PATH" "$work/err" || { cat "$work/err" && exit 1; }
echo "wheel: $(basename "$work"/wheels/*.whl)"
