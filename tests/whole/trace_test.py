#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DIOMP_TRACE as a user sees it, and the script that adds up what was hidden."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import jobs

OVERLAP = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "trace-overlap.py")


class trace_test(jobs.jobs):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def calls(self, name, function):
        with open(self.path(name), encoding="utf-8") as file:
            events = json.load(file)
        self.assertEqual(events[0]["name"], "process_name")
        return [event for event in events if event["ph"] == "X" and event["name"] == function]

    def test_a_rank_alone_writes_the_named_file(self):
        self.succeeds(1, "count_transfers", DIOMP_TRACE=self.path("t.json"))
        self.assertEqual(os.listdir(self.folder.name), ["t.json"])
        puts = self.calls("t.json", "ompx_put")
        self.assertEqual(len(puts), 10)
        self.assertEqual(sum(put["args"]["bytes"] for put in puts), 80)
        self.assertTrue(all(put["dur"] >= 0 for put in puts))
        starts = [put["ts"] for put in puts]
        self.assertEqual(starts, sorted(starts))
        self.assertEqual(len(set(starts)), 10, "the times are too coarse")

    def test_each_rank_has_a_file_of_its_own(self):
        self.succeeds(2, "count_transfers", DIOMP_TRACE=self.path("t.json"))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["t.0.json", "t.1.json"])
        self.assertEqual({call["pid"] for call in self.calls("t.1.json", "ompx_put")}, {1})
        self.succeeds(2, "count_transfers", DIOMP_TRACE=self.path("of-%r.trace"))
        self.assertIn("of-1.trace", os.listdir(self.folder.name))

    def test_a_put_between_nodes_is_a_flight_that_ends_while_its_rank_computes(self):
        self.succeeds(2, "put_and_compute", DIOMP_TRACE=self.path("t.json"), DIOMP_NODE_SIZE="1")
        with open(self.path("t.0.json"), encoding="utf-8") as file:
            events = json.load(file)
        (begin,) = [event for event in events if event["ph"] == "b"]
        (end,) = [event for event in events if event["ph"] == "e"]
        self.assertEqual(begin["name"], "put to rank 1")
        self.assertEqual(begin["args"], {"bytes": 100})
        self.assertLess(end["ts"] - begin["ts"], 90e3)
        done = subprocess.run([sys.executable, OVERLAP, self.path("t.0.json")], capture_output=True, text=True, check=True)
        rank, in_flight, hidden = done.stdout.splitlines()[1].split()[:3]
        self.assertEqual(rank, "0")
        self.assertGreater(float(hidden), 0.5 * float(in_flight))

    def test_a_file_that_cannot_be_written_is_a_warning(self):
        _, err = self.succeeds(1, "count_transfers", DIOMP_TRACE=self.path("missing/t.json"))
        self.assertIn("missing/t.json", err)

    def test_what_a_full_disk_loses_is_said_once_per_rank(self):
        os.symlink("/dev/full", self.path("t.0.json"))
        os.symlink("/dev/full", self.path("t.1.json"))
        _, err = self.succeeds(2, "count_transfers", DIOMP_TRACE=self.path("t.json"))
        for rank in range(2):
            path = self.path(f"t.{rank}.json")
            self.assertEqual(err.count(f"cannot write the trace to '{path}': No space left on device"), 1, err)
        _, err = self.succeeds(2, "count_transfers", DIOMP_STATS="summary", DIOMP_STATS_FILE="/dev/full")
        self.assertEqual(err.count("cannot write statistics to '/dev/full': No space left on device"), 2, err)

    def test_overlap_counts_flights_outside_of_calls(self):
        def call(begin, end):
            return {"ph": "X", "pid": 3, "ts": begin, "dur": end - begin, "name": "ompx_barrier"}

        def flight(number, begin, end):
            return [{"ph": "b", "pid": 3, "id": number, "ts": begin}, {"ph": "e", "pid": 3, "id": number, "ts": end}]

        # 0..4000 in flight, as two that overlap; 1000 of it inside of calls.
        events = flight(1, 0, 3000) + flight(2, 2000, 4000) + [call(0, 500), call(3500, 5000)]
        with open(self.path("made.json"), "w", encoding="utf-8") as file:
            json.dump(events, file)
        done = subprocess.run([sys.executable, OVERLAP, self.path("made.json"), "-o", self.path("all.json")],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.splitlines()[1].split(), ["3", "4.000", "3.000", "75%", "2.000"])
        with open(self.path("all.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), events)


if __name__ == "__main__":
    unittest.main()
