#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One round of bench/compare-conduits over the conduits of the build, and the line about one that it lacks.

conduits_test.py COMPARE_CONDUITS BUILD_DIRECTORY CONDUITS, with commas between those
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = {"put": [8, 64, 1024, 4096, 65536], "get": [8, 64, 1024, 4096, 65536], "put_window": [4096, 65536, 1 << 20],
         "get_window": [4096, 65536, 1 << 20]}


def main():
    wanted = sys.argv[3].split(",")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        done = subprocess.run([sys.argv[1], "--build", sys.argv[2], "--rounds", "1", "--quick", "--json", str(path)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout)
        if done.returncode != 0:
            sys.exit(f"status {done.returncode}")
        document = json.loads(path.read_text())
    found = {}
    for row in document["results"]:
        if sorted(row["us"]) != sorted(wanted) or min(row["us"].values()) <= 0:
            sys.exit(f"columns {row['us']}, expected {wanted}")
        found.setdefault(row["operation"], []).append(row["size_bytes"])
    if found != SIZES:
        sys.exit(f"rows {found}")
    for name in {"shm", "ucx", "gasnet", "gaspi"} - set(wanted):
        if f"{name}: skipped, this build does not have it" not in done.stdout:
            sys.exit(f"nothing is said about {name}")


if __name__ == "__main__":
    main()
