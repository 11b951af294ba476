#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what a job costs by its number of ranks, and extrapolates. docs/scaling.md has the results and their meaning.

  measure-scaling.py BUILD [--ranks 4,16,64] [--rounds 3]

Every rank is a node of its own (DIOMP_NODE_SIZE=1), so all peers are reached over the network conduit. All of them run
on this machine, so times are those of an overloaded one: upper bounds.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

RESIDENT = re.compile(r"resident_kib anonymous (\d+) shared (\d+)")
EXTRAPOLATED = (10 ** 3, 10 ** 4, 10 ** 5)
TIMEOUT_S = 180


def run(build, ranks, contacts):
    """(seconds from start to end, median resident KiB of a rank)"""
    bench = os.path.join(build, "bin", "diomp-bench")
    command = [os.path.join(build, "bin", "diomp-run"), "-n", str(ranks), "--", bench, "hello", "--contacts", str(contacts)]
    begin = time.monotonic()
    done = subprocess.run(command, env=dict(os.environ, DIOMP_NODE_SIZE="1"), capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)
    seconds = time.monotonic() - begin
    sizes = [int(a) + int(b) for a, b in RESIDENT.findall(done.stdout)]
    if done.returncode != 0 or len(sizes) != ranks:
        sys.exit(f"measure-scaling: {ranks} ranks, {contacts} contacts: status {done.returncode}\n{done.stderr}")
    return seconds, statistics.median(sizes)


def measure(build, ranks, contacts, rounds):
    samples = [run(build, ranks, contacts) for _ in range(rounds)]
    return statistics.median(s for s, _ in samples), statistics.median(m for _, m in samples)


def slope(points):
    """Least squares through (x, y): (y at 0, y per x)."""
    mean_x = statistics.mean(x for x, _ in points)
    mean_y = statistics.mean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    per_x = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - per_x * mean_x, per_x


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", default="4,16,32,64")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    counts = [int(word) for word in options.ranks.split(",")]
    if len(counts) < 2:
        parser.error("--ranks needs two numbers at least")
    print(f"{'ranks':>6} {'contacts':>9} {'start to end s':>15} {'resident KiB':>13}")
    idle, spoken, times = [], [], []
    for ranks in counts:
        seconds, kib = measure(options.build, ranks, 0, options.rounds)
        print(f"{ranks:>6} {0:>9} {seconds:>15.3f} {kib:>13.0f}", flush=True)
        idle.append((ranks, kib))
        times.append((ranks, seconds))
    most = counts[-1]
    for contacts in sorted({1, most // 4, most // 2, most - 1}):
        seconds, kib = measure(options.build, most, contacts, options.rounds)
        print(f"{most:>6} {contacts:>9} {seconds:>15.3f} {kib:>13.0f}", flush=True)
        spoken.append((contacts, kib))
    base, per_rank = slope(idle)
    _, per_contact = slope(spoken)
    _, per_rank_s = slope(times)
    print(f"\na rank: {base:.0f} KiB, and {per_rank * 1024:.0f} bytes per rank of the world, "
          f"{per_contact:.1f} KiB per peer spoken to")
    print(f"start and end: {per_rank_s * 1e3 * (os.cpu_count() or 1):.1f} ms of one core per rank")
    print(f"\n{'ranks':>8} {'resident MiB, none spoken to':>30} {'100 spoken to':>15}")
    for ranks in EXTRAPOLATED:
        resting = (base + per_rank * ranks) / 1024
        print(f"{ranks:>8} {resting:>30.1f} {resting + 100 * per_contact / 1024:>15.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
