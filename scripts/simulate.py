#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of many ranks on simulated machines, DiOMP's beside those of SMPI with the selections of Open MPI and
MPICH. docs/simulation.md has the results and their meaning.

  simulate.py BUILD [--ranks 1024,8192] [--topology fat-tree,dragonfly] [--limit 300] [--json FILE] [--only REGEX] [--global]

Prints a table of microseconds; `ratio` is DiOMP's time by the better one of the others. A run that takes longer than
the limit, or more memory than the machine has, leaves "-". Rows that are in FILE already are not run again.
"""
import argparse
import json
import os
import re
import subprocess
import sys

PER_NODE = 64
LIBRARIES = ("diomp", "ompi", "mpich")
KIB, MIB = 1 << 10, 1 << 20
# [ranks up to]: sizes that are run
SIZES = {
    "barrier": {10 ** 6: [8]},
    "bcast": {8192: [8, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB], 10 ** 6: [8, 64 * KIB]},
    "allreduce": {8192: [8, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB, 64 * MIB], 10 ** 6: [8, KIB]},
    "allgather": {1024: [8, KIB, 16 * KIB, 64 * KIB], 8192: [8, KIB], 10 ** 6: []},
    "alltoall": {1024: [8, 64, 256, KIB], 8192: [8], 10 ** 6: []},
}
# All ranks of each node are simulated up to this many ranks times bytes; above, one stands for its node.
ALL_RANKS_MAX = {"barrier": (8192, 0), "bcast": (8192, 64 * KIB), "allreduce": (8192, 64 * MIB),
                 "allgather": (1024, KIB), "alltoall": (8192, 10 ** 9)}


def sizes_of(collective, ranks):
    return next(sizes for limit, sizes in SIZES[collective].items() if ranks <= limit)


def simulates_all(collective, ranks, nbytes):
    max_ranks, max_bytes = ALL_RANKS_MAX[collective]
    return ranks <= max_ranks and (collective == "barrier" or nbytes <= max_bytes)


def simulate(options, library, topology, ranks, collective, nbytes):
    """The row of the run; None if it does not end in time."""
    command = [os.path.join(options.build, "bin", "diomp-sim"), "--library", library, "--topology", topology, "--nodes",
               str(ranks // PER_NODE), "--per-node", str(PER_NODE), "--collectives", collective, "--sizes", str(nbytes)]
    if library == "diomp" and simulates_all(collective, ranks, nbytes):
        command.append("--all-ranks")
    if library == "diomp" and options.in_global_memory:
        command.append("--global")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode < 0:
        return None
    if done.returncode != 0:
        sys.exit(f"simulate: {' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))


def cells(options):
    for topology in options.topology.split(","):
        for ranks in map(int, options.ranks.split(",")):
            for collective in SIZES:
                for nbytes in sizes_of(collective, ranks):
                    name = f"{topology} {ranks} {collective} {nbytes}"
                    if re.search(options.only, name):
                        yield name, (topology, ranks, collective, nbytes)


def named(nbytes):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"


def line_of(cell, seconds):
    topology, ranks, collective, nbytes = cell
    size = "" if collective == "barrier" else named(nbytes)
    times = [seconds.get(library) for library in LIBRARIES]
    others = [each for each in times[1:] if each is not None]
    ratio = f"{times[0] / min(others):.2f}" if times[0] is not None and others else "-"
    shown = [f"{each * 1e6:.1f}" if each is not None else "-" for each in times]
    return f"| {topology} | {ranks} | {collective} | {size} | {shown[0]} | {shown[1]} | {shown[2]} | {ratio} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", default="1024,8192")
    parser.add_argument("--topology", default="fat-tree,dragonfly")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run")
    parser.add_argument("--json", default="", help="keeps the times")
    parser.add_argument("--only", default="", help="cells to run, such as '1024 (barrier|bcast)'")
    parser.add_argument("--global", dest="in_global_memory", action="store_true",
                        help="DiOMP's buffers are global memory, which ranks of a node read where it lies")
    options = parser.parse_args()
    known = {}
    if options.json and os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            known = json.load(file)
    print("| network | ranks | call | size | DiOMP, us | Open MPI's selection | MPICH's selection | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for name, cell in cells(options):
        times = known.setdefault(name, {})
        for library in LIBRARIES:
            if library not in times:
                row = simulate(options, library, *cell)
                times[library] = row["seconds"] if row else None
        print(line_of(cell, times), flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main()
