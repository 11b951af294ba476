#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One round of bench/compare-conduits over the conduits of the build, with stand-ins for GPI-2's tests, and the line about a
conduit that the build lacks.

conduits_test.py COMPARE_CONDUITS BUILD_DIRECTORY CONDUITS, with commas between those
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SMALL = [8, 64, 1024, 4096, 65536]
SIZES = {"put": SMALL, "put_event": SMALL, "get": SMALL, "signal": SMALL,
         "put_window": [4096, 65536, 1 << 20], "get_window": [4096, 65536, 1 << 20]}
# One is never as fast as any of ours, the other always faster.
STAND_INS = {"read_lat": 1e9, "write_notify_lat": 0.001}
OWN = {"get": "PASS", "signal": "MISS"}


def write_stand_ins(folder):
    for name, microseconds in STAND_INS.items():
        program = folder / f"{name}.bin"
        program.write_text(f"#!/bin/sh\nfor size in {' '.join(map(str, SIZES['get']))}; do printf '%12d\\t{microseconds}\\n' "
                           "$size; done\n")
        program.chmod(0o755)


def main():
    wanted = sys.argv[3].split(",")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        write_stand_ins(Path(folder))
        done = subprocess.run([sys.argv[1], "--build", sys.argv[2], "--rounds", "1", "--quick", "--json", str(path),
                               "--gpi2-tests", folder],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout)
        if done.returncode != 0:
            sys.exit(f"status {done.returncode}")
        document = json.loads(path.read_text())
    found = {}
    for row in document["results"]:
        own = ["gpi2's own"] if "gaspi" in wanted and row["operation"] in OWN else []
        if sorted(row["us"]) != sorted(wanted + own) or min(row["us"].values()) <= 0:
            sys.exit(f"columns {row['us']}, expected {wanted}")
        found.setdefault(row["operation"], []).append(row["size_bytes"])
        line = next(line for line in done.stdout.splitlines() if line.split()[:2] == [row["operation"], str(row["size_bytes"])])
        if own and not line.split("   (cores")[0].endswith(OWN[row["operation"]]):
            sys.exit(f"a wrong verdict: {line}")
    if found != SIZES:
        sys.exit(f"rows {found}")
    for name in {"shm", "ucx", "gasnet", "gaspi"} - set(wanted):
        if f"{name}: skipped, this build does not have it" not in done.stdout:
            sys.exit(f"nothing is said about {name}")


if __name__ == "__main__":
    main()
