#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One round of bench/compare-remote --scaling: a row per number of devices, and kernels take their time.
scaling_test.py COMPARE_REMOTE BUILD_DIRECTORY"""

import re
import subprocess
import sys

KERNEL_TIME = 0.05


def main():
    done = subprocess.run([sys.argv[1], "--build", sys.argv[2], "--scaling", "--rounds", "1", "--kernel-time", str(KERNEL_TIME)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}")
    rows = re.findall(r"^ +(\d) +([\d.]+) +([\d.]+) +>= 0.95 (PASS|MISS)$", done.stdout, re.MULTILINE)
    if [row[0] for row in rows] != ["1", "2", "3", "4"]:
        sys.exit(f"rows {rows}")
    for devices, step, efficiency, _ in rows:
        if not KERNEL_TIME <= float(step) < 20 * KERNEL_TIME:
            sys.exit(f"{devices} devices: a step took {step} s")
        if not 0 < float(efficiency) <= 1.5:
            sys.exit(f"{devices} devices: efficiency {efficiency}")


if __name__ == "__main__":
    main()
