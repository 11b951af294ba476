#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The distribution's Python, whatever comes first in PATH: its packages include matplotlib, see scripts/setup.sh.
"""Draws time and bandwidth by size from the JSON of bench/compare or of diomp-bench.

    scripts/plot-bench.py compare.json -o bench.png [--ranks 2] [--operations put,get,bcast,allreduce]

One column per operation; above the median time, below the bandwidth (the size given to the call by its time).
Shaded, in the time plots: from the least to the largest of the rounds (bench/compare) or from the 10th to the 90th
percentile (diomp-bench).
"""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

# One colour per library in every picture; grey and dashed: not a library but a limit.
STYLES = {
    "diomp": ("DiOMP", "#c1272d", "-", "o"),
    "diomp, global": ("DiOMP, buffers in global memory", "#e58a6f", "-", "s"),
    "openmpi": ("Open MPI", "#1f5fa8", "-", "^"),
    "mpich": ("MPICH", "#3a9a5b", "-", "v"),
    "openshmem": ("OpenSHMEM (Open MPI)", "#8a5fb0", "-", "D"),
    "copy_limit": ("best of memcpy, streaming stores", "#6e6e6e", "--", ""),
}


def read_series(path, ranks):
    """{operation: {library: [(size, median, low, high)]}}, times in microseconds."""
    document = json.loads(path.read_text())
    series = {}

    def add(operation, library, point):
        series.setdefault(operation, {}).setdefault(library, []).append(point)

    if document["schema"].startswith("diomp-bench/"):
        for row in document["rows"]:
            if row["ranks"] == ranks and row["size_bytes"] > 0 and row["threads"] == 1:
                library = row["library"] + (", global" if row["buffers"] == "global" else "")
                add(row["operation"], library, (row["size_bytes"], row["median_us"], row["p10_us"], row["p90_us"]))
    elif document["schema"].startswith("diomp-compare/"):
        for row in document["results"]:
            if row["ranks"] != ranks or row["size_bytes"] == 0 or row["threads"] != 1:
                continue
            for library, median in row["us"].items():
                ours = library == "diomp"
                rounds = row["rounds"].get(library, [median])
                point = (row["size_bytes"], median, min(rounds), max(rounds))
                if ours and row["buffers"] == "global":
                    add(row["operation"], "diomp, global", point)
                elif ours or row["buffers"] != "global" or "diomp" not in row["us"]:
                    add(row["operation"], library, point)
    else:
        sys.exit(f"plot-bench: {path} has the unknown schema {document['schema']}")
    return series, document


def size_label(value, _position=None):
    for unit, name in ((1024 ** 3, "GiB"), (1024 ** 2, "MiB"), (1024, "KiB")):
        if value >= unit:
            return f"{value / unit:g} {name}"
    return f"{value:g} B"


def draw(axes, by_library, title):
    time_axis, rate_axis = axes
    for library, style in STYLES.items():
        points = sorted(by_library.get(library, []))
        if not points:
            continue
        label, colour, line, marker = style
        sizes, medians, lows, highs = zip(*points)
        look = dict(color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.6, label=label)
        time_axis.plot(sizes, medians, **look)
        if library != "copy_limit":
            time_axis.fill_between(sizes, lows, highs, color=colour, alpha=0.15, linewidth=0)
        rate_axis.plot(sizes, [size / median / 1000 for size, median in zip(sizes, medians)], **look)
    time_axis.set_title(title)
    time_axis.set_yscale("log")
    rate_axis.set_ylim(bottom=0)
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(size_label))
        axis.tick_params(axis="x", labelrotation=30, labelsize=8)
        axis.grid(True, color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench.png"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--operations", default="put,get,bcast,allreduce")
    arguments = parser.parse_args()
    series, document = read_series(arguments.input, arguments.ranks)
    operations = [name for name in arguments.operations.split(",") if name in series]
    if not operations:
        sys.exit(f"plot-bench: {arguments.input} has none of {arguments.operations} for {arguments.ranks} ranks")
    figure, grid = plt.subplots(2, len(operations), figsize=(4.2 * len(operations), 7), squeeze=False)
    for column, operation in enumerate(operations):
        draw(grid[:, column], series[operation], {"put": "put + fence"}.get(operation, operation))
    grid[0][0].set_ylabel("time (µs)")
    grid[1][0].set_ylabel("bandwidth (GB/s)")
    labels = {}
    for axis in grid[0]:
        handles, names = axis.get_legend_handles_labels()
        labels.update(zip(names, handles))
    figure.legend(labels.values(), labels.keys(), loc="lower center", ncol=len(labels), frameon=False)
    machine = document.get("machine") or (document.get("rows") or [{}])[0]
    figure.suptitle(f"{arguments.ranks} ranks, {machine.get('cpu', '?')}, {machine.get('cores', '?')} cores, "
                    f"commit {machine.get('commit', '?')}", fontsize=10)
    figure.tight_layout(rect=(0, 0.04, 1, 0.98))
    figure.savefig(arguments.output, dpi=130)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
