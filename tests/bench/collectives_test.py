#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One round of bench/compare-collectives: every row with every column, and the map.

collectives_test.py COMPARE_COLLECTIVES BUILD_DIRECTORY
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = [8, 128 * 1024]


def main():
    script, build = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "all.json"
        command = [sys.executable, script, "--build", build, "--rounds", "1", "--layouts", "2x1,2x2",
                   "--sizes", ",".join(map(str, SIZES)), "--json", str(output)]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        document = json.loads(output.read_text())
    found = {(row["operation"], row["ranks"], row["threads"], row["size_bytes"]): row["us"]
             for row in document["results"]}
    for operation in ("bcast", "allreduce"):
        for endpoints, devices in ((2, 1), (4, 2)):
            for size in SIZES:
                columns = {"diomp", "openmpi"} | ({"two_phase"} if devices > 1 else set())
                us = found.pop((operation, endpoints, devices, size))
                assert set(us) == columns, (operation, endpoints, size, us)
                assert all(value > 0 for value in us.values()), us
        assert f"log10(Open MPI / ours), {operation}" in text, text
    assert not found, found
    print("bench_collectives: ok")


if __name__ == "__main__":
    main()
