#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compare-builds on one build as both: every row, and a row that is made slower. builds_test.py SCRIPT BUILD"""
import importlib.machinery
import importlib.util
import subprocess
import sys

script, build = sys.argv[1:]
done = subprocess.run([sys.executable, script, build, build, "--rounds", "1", "--rows", "shm", "--sizes", "8"],
                      capture_output=True, text=True, timeout=120, check=False)
rows = [line for line in done.stdout.splitlines() if line.startswith("shm ")]
operations = {line.split()[1] for line in rows}
missing = {"put", "get", "fetch_add", "barrier", "allreduce", "alltoall"} - operations
if missing or done.returncode not in (0, 1) or "slower rows:" not in done.stdout:
    sys.exit(f"rows missing: {missing}, exit status {done.returncode}\n{done.stdout}{done.stderr}")

loader = importlib.machinery.SourceFileLoader("compare_builds", script)
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_builds", loader))
loader.exec_module(module)
same = {"before": [1.0, 1.1], "before again": [1.0, 1.1]}
for after, expected in (([1.0, 1.1], False), ([1.02, 1.12], False), ([1.2, 1.3], True), ([1.0, 1.5], False)):
    if module.is_slower({**same, "after": after}) != expected:
        sys.exit(f"{after} after {same}: {not expected}")
noisy = {"before": [1.0, 1.0], "before again": [1.5, 1.5], "after": [1.6, 1.6]}
if module.is_slower(noisy):
    sys.exit("a row was slower than the noise of the build before")
print(f"{len(rows)} rows")
