#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One round of bench/compare-offload: every row with every column. offload_test.py COMPARE_OFFLOAD BUILD_DIRECTORY"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def columns(rows):
    """{(operation, buffers): [(size, columns)]}"""
    found = {}
    for row in rows:
        entry = found.setdefault((row["operation"], row["buffers"]), [])
        entry.append((row["size_bytes"], sorted(name for name, us in row["us"].items() if us > 0)))
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        done = subprocess.run([sys.argv[1], "--build", sys.argv[2], "--rounds", "1", "--json", str(path)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout)
        if done.returncode != 0:
            sys.exit(f"status {done.returncode}")
        document = json.loads(path.read_text())
    libraries = ["alone", "diomp", "packaged"]
    sizes = [64, 4096, 65536, 1 << 20, 16 << 20]
    expected = {("region", "-"): [(0, libraries)]}
    for operation in ("map_tofrom", "enter_exit", "target_alloc"):
        expected[operation, "-"] = [(size, libraries) for size in sizes]
    for operation in ("copy_to", "copy_from"):
        expected[operation, "-"] = [(size, libraries) for size in sizes[2:] + [64 << 20]]
    for buffers in ("device", "mapped"):
        expected["put", buffers] = [(size, ["diomp", "host"]) for size in [8] + sizes[1:]]
    found = columns(document["results"])
    if found != expected:
        sys.exit(f"rows {found}, expected {expected}")
    if not document["machine"]["cpu"] or document["machine"]["cores"] < 1:
        sys.exit(f"machine {document['machine']}")


if __name__ == "__main__":
    main()
