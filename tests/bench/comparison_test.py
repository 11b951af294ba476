#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goals and table of bench/compare over made-up times: comparison_test.py BENCH_DIRECTORY"""

import contextlib
import io
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
from comparison import goals, table  # noqa: E402


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
