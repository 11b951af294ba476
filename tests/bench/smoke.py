#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs subcommands of diomp-bench with tiny settings and checks the rows that they write.

smoke.py DIOMP_RUN DIOMP_BENCH RANKS SUBCOMMAND OPERATION...
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def fail(message):
    sys.exit("smoke: " + message)


def check_row(row, ranks):
    name = row["operation"]
    if not 0 < row["median_us"] < 5e6:
        fail(f"{name}: median of {row['median_us']} us")
    if not row["p10_us"] <= row["median_us"] <= row["p90_us"]:
        fail(f"{name}: percentiles out of order")
    if row["library"] != "diomp" or (row["ranks"] != ranks and name != "startup"):
        fail(f"{name}: library {row['library']}, {row['ranks']} ranks")
    if row["iterations"] < 1 or row["cores"] < 1 or not row["cpu"] or not row["commit"]:
        fail(f"{name}: {row}")
    # Faster than any memory of today: then nothing was moved.
    if row["size_bytes"] >= 4096 and row["mb_per_s"] > 2e6:
        fail(f"{name}: {row['mb_per_s']} MB/s")


def main():
    launcher, program, ranks, subcommand = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    operations = set(sys.argv[5:])
    with tempfile.TemporaryDirectory() as folder:
        json_path, csv_path = Path(folder, "rows.json"), Path(folder, "rows.csv")
        command = [launcher, "-n", str(ranks), "--bind-to", "none", "--timeout", "60", "--", program, subcommand,
                   "--sizes", "8,4096", "--min-time", "0.0005", "--repeat", "3", "--startup-ranks", "2",
                   "--json", str(json_path), "--csv", str(csv_path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout)
        if done.returncode != 0:
            fail(f"status {done.returncode}")
        rows = json.loads(json_path.read_text())["rows"]
        with csv_path.open(newline="") as file:
            table = list(csv.DictReader(file))
    for row in rows:
        check_row(row, ranks)
        if row["operation"] not in done.stdout:
            fail(f"{row['operation']} is not in the text table")
    found = {row["operation"] for row in rows}
    if found != operations:
        fail(f"operations {sorted(found)}, expected {sorted(operations)}")
    if [line["median_us"] for line in table] != [f"{row['median_us']:.6g}" for row in rows]:
        fail("CSV and JSON differ")


if __name__ == "__main__":
    main()
