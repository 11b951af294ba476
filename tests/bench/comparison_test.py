#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goals and table of bench/compare over made-up times: comparison_test.py BENCH_DIRECTORY"""

import contextlib
import io
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
from comparison import distance, goals, hosts, table  # noqa: E402


def verdicts(*entries):
    """Entries: (operation, buffers, ranks, threads, size, {library: rounds}); gives the judged rows."""
    results = table.Results()
    for *key, times in entries:
        for library, rounds in times.items():
            for value in rounds:
                results.add(*key, library, value)
    return goals.judge(results)


def verdict(operation, size, times, ranks=2, buffers="private"):
    rounds = {name: [value] for name, value in times.items()}
    return verdicts((operation, buffers, ranks, 1, size, rounds))[0]["verdict"]


def host_verdict(operation, size, times, threads=1, others=()):
    results = table.Results()
    for name, value in times.items():
        results.add(operation, "private", 2, threads, size, name, value)
    for other_threads, value in others:
        results.add(operation, "private", 2, other_threads, size, "diomp", value)
    return next(row["verdict"] for row in goals.judge(results, hosts.goal_of) if row["threads"] == threads)


class Distance(unittest.TestCase):
    class Watch(distance.Watch):
        """Over made-up looks; the last one is repeated."""

        def __init__(self, looks, patience_s):
            self.looks = list(looks)
            super().__init__("", patience_s)

        def look(self):
            return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def test_the_usual_one_is_what_most_are_like(self):
        self.assertIn(distance.usual([120, 525, 118, 121, 60, 530]), (118, 120, 121))
        self.assertEqual(distance.usual([0, 0]), None)
        self.assertEqual(distance.usual([]), None)

    def test_only_rounds_at_the_usual_one_count(self):
        results = table.Results()
        for value, apart in ((9, 525), (1, 120), (3, 118), (100, distance.MIXED)):
            results.add("put", "private", 2, 1, 8, "diomp", value, apart)
        results.add("put", "private", 2, 1, 8, "openmpi", 7, 530)
        row = results.rows()[0]
        self.assertEqual(row["us"], {"diomp": 2, "openmpi": 7})
        self.assertEqual(row["elsewhere"], ["openmpi"])
        self.assertEqual(row["rounds"]["diomp"], [9, 1, 3, 100])
        self.assertEqual(results.median("put", "private", {"ranks": 2, "threads": 1, "size_bytes": 8}, "diomp"), [2])

    def test_what_nobody_looked_at_counts(self):
        results = table.Results()
        results.add("put", "private", 2, 1, 8, "diomp", 4)
        self.assertEqual(results.rows()[0]["us"], {"diomp": 4})
        self.assertEqual(results.rows()[0]["elsewhere"], [])

    def test_what_was_disturbed_is_measured_again(self):
        # Ten looks at first, then before and after each try: moved away, moved meanwhile, stayed.
        watch = self.Watch([100] * 10 + [100, 100, 500, 100, 500, 100, 100, 100, 100], 30)
        runs = []
        self.assertEqual(watch.measure(lambda: runs.append(1)), (None, 100))
        self.assertEqual(len(runs), 3)

    def test_patience_ends(self):
        watch = self.Watch([100] * 10 + [500], 0)
        runs = []
        self.assertEqual(watch.measure(lambda: runs.append(1)), (None, 500))
        self.assertEqual(len(runs), 1)


class HostGoals(unittest.TestCase):
    def test_small_transfers_are_held_against_tcp_and_peers(self):
        self.assertEqual(host_verdict("put", 8, {"diomp": 12.5, "tcp": 10, "mpich": 13}), "PASS")
        self.assertEqual(host_verdict("put", 8, {"diomp": 12.6, "tcp": 10, "mpich": 13}), "MISS")
        self.assertEqual(host_verdict("get", 4096, {"diomp": 12, "tcp": 10, "mpich": 11}), "MISS")
        self.assertEqual(host_verdict("get", 4096, {"diomp": 12, "mpich": 13}), "n/a")

    def test_large_transfers_reach_a_share_of_the_stream(self):
        self.assertEqual(host_verdict("put_window", 1 << 20, {"diomp": 117, "tcp": 100, "ompi-tcp": 200}), "PASS")
        self.assertEqual(host_verdict("put_window", 1 << 20, {"diomp": 118, "tcp": 100, "ompi-tcp": 200}), "MISS")

    def test_collectives_beat_the_better_open_mpi(self):
        self.assertEqual(host_verdict("bcast", 8, {"diomp": 9, "ompi-tcp": 10, "ompi-ucx": 12, "mpich": 1}), "PASS")
        self.assertEqual(host_verdict("bcast", 8, {"diomp": 11, "ompi-tcp": 10, "ompi-ucx": 12}), "MISS")

    def test_more_threads_do_not_fall_below_one(self):
        self.assertEqual(host_verdict("rate", 8, {"diomp": 0.4}, threads=2, others=[(1, 0.5)]), "PASS")
        self.assertEqual(host_verdict("rate", 8, {"diomp": 0.6}, threads=2, others=[(1, 0.5)]), "MISS")


class Goals(unittest.TestCase):
    def test_small_put_is_a_quarter_of_open_mpi(self):
        self.assertEqual(verdict("put", 8, {"diomp": 0.010, "openmpi": 0.040}), "PASS")
        self.assertEqual(verdict("put", 8, {"diomp": 0.011, "openmpi": 0.040}), "MISS")
        self.assertEqual(verdict("put", 4096, {"diomp": 0.06, "openmpi": 0.1}), "PASS")
        self.assertEqual(verdict("get", 4096, {"diomp": 0.07, "openmpi": 0.1}), "MISS")

    def test_missing_peer_is_no_pass(self):
        self.assertEqual(verdict("put", 8, {"diomp": 0.010}), "n/a")
        self.assertEqual(verdict("barrier", 0, {"diomp": 0.010}, buffers="-"), "n/a")

    def test_large_put_reaches_the_limit_and_every_peer(self):
        def large(ours, memcpy, stream, peer):
            rows = verdicts(("put", "private", 2, 1, 1 << 20, {"diomp": [ours], "mpich": [peer]}),
                            ("memcpy_put", "private", 2, 1, 1 << 20, {"diomp": [memcpy]}),
                            ("stream_put", "private", 2, 1, 1 << 20, {"diomp": [stream]}))
            return next(row["verdict"] for row in rows if row["operation"] == "put")

        self.assertEqual(large(103, 100, 200, 104), "PASS")
        self.assertEqual(large(104, 100, 200, 200), "MISS")
        self.assertEqual(large(104, 200, 100, 200), "MISS")
        self.assertEqual(large(100, 100, 200, 99), "MISS")

    def test_more_ranks_than_two_are_held_against_every_peer(self):
        self.assertEqual(verdict("allreduce", 8, {"diomp": 5, "openmpi": 6, "mpich": 4}, ranks=4), "MISS")
        self.assertEqual(verdict("allreduce", 8, {"diomp": 4, "openmpi": 6, "mpich": 4}, ranks=4), "PASS")

    def test_collectives_of_two_ranks(self):
        self.assertEqual(verdict("bcast", 8, {"diomp": 0.9, "openmpi": 1}), "PASS")
        self.assertEqual(verdict("bcast", 65536, {"diomp": 0.9, "openmpi": 1}), "MISS")
        self.assertEqual(verdict("bcast", 65536, {"diomp": 0.9, "openmpi": 1}, buffers="global"), "-")
        self.assertEqual(verdict("gather", 8, {"diomp": 2, "openmpi": 1}), "-")

    def test_rate_scales(self):
        def rate(one, two):
            rows = verdicts(("rate", "private", 2, 1, 8, {"diomp": [one]}),
                            ("rate", "private", 2, 2, 8, {"diomp": [two]}))
            return [row["verdict"] for row in rows]

        self.assertEqual(rate(1.0, 0.6), ["-", "PASS"])
        self.assertEqual(rate(1.0, 0.8), ["-", "MISS"])

    def test_start_up_and_memory(self):
        self.assertEqual(verdict("startup", 0, {"diomp": 149e3}, ranks=4, buffers="-"), "PASS")
        self.assertEqual(verdict("startup", 0, {"diomp": 151e3}, ranks=4, buffers="-"), "MISS")
        self.assertEqual(verdict("resident_kib", 0, {"diomp": 8193}, ranks=4, buffers="-"), "MISS")


class Table(unittest.TestCase):
    def test_figure_is_the_median_of_the_rounds(self):
        row = verdicts(("put", "private", 2, 1, 8, {"diomp": [1, 9, 2], "openmpi": [8, 8, 1000]}))[0]
        self.assertEqual((row["us"]["diomp"], row["us"]["openmpi"], row["ratio"]["openmpi"]), (2, 8, 0.25))

    def test_a_peer_with_one_kind_of_buffer_stands_beside_both_of_ours(self):
        rows = verdicts(("bcast", "private", 2, 1, 8, {"diomp": [1], "openmpi": [2]}),
                        ("bcast", "global", 2, 1, 8, {"diomp": [1], "openshmem": [4]}))
        self.assertEqual([sorted(row["us"]) for row in rows], [["diomp", "openmpi", "openshmem"]] * 2)

    def test_print_shows_times_ratio_and_verdict(self):
        out = io.StringIO()
        rows = verdicts(("put", "private", 2, 1, 8, {"diomp": [1], "openmpi": [2]}))
        with contextlib.redirect_stdout(out):
            table.print_rows(rows, ["diomp", "openmpi"])
        line = next(line for line in out.getvalue().splitlines() if line.startswith("put"))
        self.assertEqual(line.split()[5:8], ["1.0000", "2.0000", "0.50"])
        self.assertTrue(line.endswith("MISS"))


if __name__ == "__main__":
    unittest.main()
