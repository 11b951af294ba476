#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the communication lines of the apps and of their MPI twins.

Counted are the lines between /* comm:begin */ and /* comm:end */ that hold code: no blank lines, no
comments. The markers enclose what the exchange needs (calls, their arguments, set-up, checks); the
function headings that both twins share by their common interface stand outside. Long calls count
as the lines that clang-format makes of them, on both sides alike.

Exit status 1 if the DiOMP version of an exchange with a limit has more than --limit times the lines
of MPI's.
"""
import argparse
import pathlib
import re
import sys

APPS = pathlib.Path(__file__).resolve().parent.parent / "apps"

# name, DiOMP file, MPI file, whether the limit applies
ROWS = [
    ("minimod: halo exchange", "minimod/halo_diomp.c", "minimod/halo_mpi.c", True),
    ("matmul: ring shift", "matmul/ring_diomp.c", "matmul/ring_mpi.c", True),
    ("summa: panels", "matmul/panels_diomp.c", "matmul/panels_mpi.c", False),
    ("minimod on devices", "minimod/halo_target.c", "minimod/halo_target_mpi.c", True),
    ("matmul on devices", "matmul/ring_target.c", "matmul/ring_target_mpi.c", True),
    ("cg on devices", "cg/exchange_target.c", "cg/exchange_target_mpi.c", False),
    ("train on devices", "train/share_target.c", "train/share_target_mpi.c", True),
    ("minimod, neighbours only", "minimod/halo_signal.c", "minimod/halo_mpi.c", False),
    ("minimod, by channels", "minimod/halo_channel.c", "minimod/halo_mpi.c", False),
    ("minimod, by regions", "minimod/steps_region.h", "minimod/halo_target_mpi.c", False),
    ("start-up, memory, gather, reduce", "common/comm_diomp.c", "common/comm_mpi.c", False),
]


def strip_comments(text):
    """Replaces comments by blanks, keeps line ends, markers and strings."""
    pattern = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)

    def blank(match):
        piece = match.group(0)
        if piece.startswith('"') or "comm:" in piece:
            return piece
        return "\n" * piece.count("\n")

    return pattern.sub(blank, text)


def count(text, name="text"):
    lines = 0
    inside = False
    found = False
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        line = line.strip()
        if line == "/* comm:begin */":
            if inside:
                raise ValueError(f"{name}:{number}: comm:begin inside comm:begin")
            inside = found = True
        elif line == "/* comm:end */":
            if not inside:
                raise ValueError(f"{name}:{number}: comm:end without comm:begin")
            inside = False
        elif inside and line:
            lines += 1
    if inside or not found:
        raise ValueError(f"{name}: " + ("comm:begin without comm:end" if inside else "no markers"))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=0.5, help="largest DiOMP / MPI ratio [0.5]")
    arguments = parser.parse_args()
    print(f"{'communication of':34} {'DiOMP':>6} {'MPI':>6} {'ratio':>6}  limit")
    too_many = []
    for name, ours, theirs, limited in ROWS:
        diomp = count((APPS / ours).read_text(), ours)
        mpi = count((APPS / theirs).read_text(), theirs)
        ratio = diomp / mpi
        limit = f"{arguments.limit:.2f}" if limited else "-"
        print(f"{name:34} {diomp:6d} {mpi:6d} {ratio:6.2f}  {limit}")
        if limited and ratio > arguments.limit:
            too_many.append(name)
    for name in too_many:
        print(f"count-lines.py: {name}: more than {arguments.limit} of MPI's lines", file=sys.stderr)
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
