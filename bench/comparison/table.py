# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results by operation, and their table."""

import statistics
import sys


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


class Results:
    """Times in microseconds (resident_kib: KiB), a list per key and library: one value per round."""

    def __init__(self):
        self.times = {}
        self.machine = {}

    def add(self, operation, buffers, ranks, threads, size_bytes, library, value):
        key = (operation, buffers, ranks, threads, size_bytes)
        self.times.setdefault(key, {}).setdefault(library, []).append(value)

    def add_rows(self, library, rows):
        for row in rows:
            self.add(row["operation"], row["buffers"], row["ranks"], row["threads"], row["size_bytes"], library,
                     row["median_us"])
            self.machine = {name: row[name] for name in ("cpu", "cores", "commit")}

    def median(self, operation, buffers, row, library):
        """A list of one median, or empty."""
        key = (operation, buffers, row["ranks"], row["threads"], row["size_bytes"])
        values = self.times.get(key, {}).get(library)
        return [statistics.median(values)] if values else []

    def rows(self):
        """One per operation, buffers, ranks, threads and size.

        A library that has this operation with one kind of buffer only (MPI: private, OpenSHMEM: global) stands in
        the rows of both, since that is what a user of it can have.
        """
        result = []
        for (operation, buffers, ranks, threads, size), times in self.times.items():
            by_library = dict(times)
            for other in ("private", "global"):
                twin = self.times.get((operation, other, ranks, threads, size), {})
                if "diomp" in times and other != buffers:
                    by_library = {**twin, **by_library}
            ours_has_it = any("diomp" in self.times.get((operation, kind, ranks, threads, size), {})
                              for kind in ("private", "global"))
            if "diomp" not in times and buffers != "-" and ours_has_it:
                continue  # already a column of our row
            result.append({
                "operation": operation, "buffers": buffers, "ranks": ranks, "threads": threads, "size_bytes": size,
                "us": {name: statistics.median(values) for name, values in by_library.items()},
                "rounds": by_library,
            })
        result.sort(key=lambda row: (row["ranks"], row["threads"]))
        return result


def show(value):
    if value is None:
        return "-"
    return f"{value:.4f}" if value < 10 else f"{value:.2f}" if value < 1000 else f"{value:.0f}"


def print_rows(rows, names):
    """Times are microseconds, except resident_kib; the ratios are ours / peer. Without goals there are no verdicts."""
    columns = names + (["copy_limit"] if any("copy_limit" in row["us"] for row in rows) else [])
    peers = [name for name in columns if name != "diomp"]
    print(f"\n{'operation':<20} {'buffers':<8} {'ranks':>5} {'thr':>3} {'bytes':>9} {'diomp':>10}", end="")
    for name in peers:
        print(f" {name:>10} {'ratio':>6}", end="")
    judged = any(row["goal"] for row in rows)
    print(f"  {'goal':<24} verdict" if judged else "")
    for row in rows:
        us = row["us"]
        if row["operation"].startswith(("memcpy_", "stream_")):
            continue  # the rows of put and get show the better of them; the JSON has all
        print(f"{row['operation']:<20} {row['buffers']:<8} {row['ranks']:>5} {row['threads']:>3} "
              f"{row['size_bytes']:>9} {show(us.get('diomp')):>10}", end="")
        for name in peers:
            ratio = row["ratio"].get(name)
            print(f" {show(us.get(name)):>10} {'-' if ratio is None else format(ratio, '.2f'):>6}", end="")
        print(f"  {row['goal']:<24} {row['verdict']}" if judged else "")
    if not judged:
        return
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("PASS", "MISS", "n/a")}
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
