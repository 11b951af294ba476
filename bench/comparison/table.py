# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results by operation, and their table."""

import statistics
import sys

from comparison import distance


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


class Results:
    """Times in microseconds (resident_kib: KiB), a list per key and library: one value per round, and the distance
    of the cores then (distance.py), if it was measured."""

    def __init__(self):
        self.times = {}
        self.distances = {}
        self.machine = {}

    def add(self, operation, buffers, ranks, threads, size_bytes, library, value, apart=None):
        key = (operation, buffers, ranks, threads, size_bytes)
        self.times.setdefault(key, {}).setdefault(library, []).append(value)
        self.distances.setdefault(key, {}).setdefault(library, []).append(apart)

    def add_rows(self, library, rows, apart=None):
        for row in rows:
            self.add(row["operation"], row["buffers"], row["ranks"], row["threads"], row["size_bytes"], library,
                     row["median_us"], apart)
            self.machine = {name: row[name] for name in ("cpu", "cores", "commit")}

    def median(self, operation, buffers, row, library):
        """A list of one median, or empty."""
        key = (operation, buffers, row["ranks"], row["threads"], row["size_bytes"])
        if library not in self.times.get(key, {}):
            return []
        return [statistics.median(self.at_distance(key, library, self.usual_distance())[0])]

    def usual_distance(self):
        return distance.usual([apart for of in self.distances.values() for each in of.values() for apart in each
                               if apart is not None and apart > 0])

    def at_distance(self, key, library, usual):
        """The values at the usual distance, or all if there is none, and whether that is so."""
        values, distances = self.times[key][library], self.distances[key][library]
        there = [value for value, apart in zip(values, distances)
                 if apart is None or usual is None or distance.alike(apart, usual)]
        return there or values, not there

    def rows(self):
        """One per operation, buffers, ranks, threads and size.

        A library that has this operation with one kind of buffer only (MPI: private, OpenSHMEM: global) stands in
        the rows of both, since its users have no other.
        """
        result = []
        usual = self.usual_distance()
        for key, times in self.times.items():
            operation, buffers, ranks, threads, size = key
            by_library = dict.fromkeys(times, key)
            for other in ("private", "global"):
                twin_key = (operation, other, ranks, threads, size)
                if "diomp" in times and other != buffers:
                    by_library = {**dict.fromkeys(self.times.get(twin_key, {}), twin_key), **by_library}
            ours_has_it = any("diomp" in self.times.get((operation, kind, ranks, threads, size), {})
                              for kind in ("private", "global"))
            if "diomp" not in times and buffers != "-" and ours_has_it:
                continue  # already a column of DiOMP's row
            kept = {name: self.at_distance(where, name, usual) for name, where in by_library.items()}
            result.append({
                "operation": operation, "buffers": buffers, "ranks": ranks, "threads": threads, "size_bytes": size,
                "us": {name: statistics.median(values) for name, (values, _) in kept.items()},
                "rounds": {name: self.times[where][name] for name, where in by_library.items()},
                "elsewhere": [name for name, (_, is_elsewhere) in kept.items() if is_elsewhere],
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
        print(f"  {row['goal']:<24} {row['verdict']}" if judged else "", end="")
        print(f"  (cores elsewhere: {', '.join(row['elsewhere'])})" if row.get("elsewhere") else "")
    if not judged:
        return
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("PASS", "MISS", "n/a")}
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
