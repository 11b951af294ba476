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

MERGE = os.path.join(os.path.dirname(jobs.RUN), "diomp-trace")
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
        self.assertEqual(begin["args"], {"bytes": 100, "peer": 1})
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
        done = subprocess.run([sys.executable, OVERLAP, self.path("made.json")], capture_output=True, text=True,
                              check=True)
        self.assertEqual(done.stdout.splitlines()[1].split(), ["3", "4.000", "3.000", "75%", "2.000"])

    def events_of(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def test_calls_have_peer_group_and_thread(self):
        self.succeeds(3, "trace_groups", DIOMP_TRACE=self.path("t.json"))
        labels = []
        for rank in range(3):
            events = self.events_of(f"t.{rank}.json")
            calls = [event for event in events if event["ph"] == "X"]
            (put,) = [call for call in calls if call["name"] == "ompx_put"]
            self.assertEqual(put["args"]["peer"], (rank + 1) % 3)
            self.assertNotIn("group", put["args"])
            (world,) = [call for call in calls if call["name"] == "ompx_sync"]
            self.assertEqual(world["args"]["group"], "world")
            self.assertNotIn("peer", world["args"])
            (other,) = [call for call in calls if call["name"] == "ompx_allreduce"]
            labels.append(other["args"]["group"])
            (fence,) = [call for call in calls if call["name"] == "ompx_fence_rank"]
            self.assertEqual(fence["args"]["peer"], (rank + 1) % 3)
            names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
            self.assertEqual(names[put["tid"]], "putter", "a thread that has ended keeps its name")
            self.assertEqual(names[world["tid"]], "actor")
        self.assertEqual(labels[0], labels[2])
        self.assertNotIn(labels[1], (labels[0], "world"))
        self.assertNotEqual(labels[0], "world")

    def merge(self, *names):
        return subprocess.run([MERGE, "-o", self.path("all.json"), *map(self.path, names)], capture_output=True,
                              text=True, check=False)

    def test_the_ranks_files_become_one(self):
        self.succeeds(2, "put_and_compute", DIOMP_TRACE=self.path("t.json"), DIOMP_NODE_SIZE="1")
        done = self.merge("t.1.json", "t.0.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # A node that only seems to be another host.
        self.assertRegex(done.stdout, r"^\S+\+1: clock moved by 0\.000 us\n$")
        events = self.events_of("all.json")
        self.assertEqual(len(events), sum(len(self.events_of(f"t.{rank}.json")) for rank in range(2)))
        self.assertEqual([event["pid"] for event in events if event["name"] == "process_name"], [0, 1])
        flights = [event["id"] for event in events if event["ph"] == "b"]
        self.assertEqual(len(flights), 2)
        self.assertEqual(len(set(flights)), 2, "of two ranks")

    def made_trace(self, rank, host, clock_us, barriers):
        """Writes the trace of a rank whose clock is ahead by clock_us, with (begin, end) of its barriers."""
        events = [{"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank} on {host}"}}]
        for begin, end in barriers:
            events.append({"ph": "X", "name": "ompx_barrier", "pid": rank, "tid": 1, "ts": begin + clock_us,
                           "dur": end - begin, "args": {"bytes": 0, "path": "", "group": "world"}})
        with open(self.path(f"t.{rank}.json"), "w", encoding="utf-8") as file:
            json.dump(events, file)

    def merged_barriers(self, rank):
        return [event["ts"] for event in self.events_of("all.json") if event["ph"] == "X" and event["pid"] == rank]

    def test_clocks_of_hosts_are_aligned(self):
        # Rank 2 enters last and first, so that the barriers bound its clock to 10 us.
        self.made_trace(0, "a", 0, [(1000, 2010), (3000, 4005)])
        self.made_trace(1, "a", 0, [(1100, 2010), (3990, 4005)])
        self.made_trace(2, "b", 5e6, [(2000, 2010), (3000, 4005)])
        self.made_trace(3, "c", 4, [(1500, 2010), (3500, 4005)])
        done = self.merge("t.0.json", "t.1.json", "t.2.json", "t.3.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^b: clock moved by -[0-9.]+ us\nc: clock moved by 0.000 us\n$")
        self.assertEqual(self.merged_barriers(0), [1000, 3000])
        for found, true in zip(self.merged_barriers(2), (2000, 3000)):
            self.assertLessEqual(abs(found - true), 15)
        self.assertEqual(self.merged_barriers(3), [1504, 3504], "its clock may be right")

    def test_a_host_without_common_calls_is_named(self):
        self.made_trace(0, "a", 0, [(1000, 2000)])
        self.made_trace(1, "b", 700, [])
        done = self.merge("t.0.json", "t.1.json")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "b: no collective call of the world aligns its clock\n"))

    def test_what_is_no_trace_is_an_error(self):
        self.made_trace(0, "a", 0, [(1000, 2000)])
        for name, content in (("cut.json", "[{"), ("other.json", "{}"), ("empty.json", "")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(content)
            done = self.merge("t.0.json", name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(self.path(name), done.stderr)
        self.assertIn("missing.json: No such file", self.merge("missing.json").stderr)
        self.assertFalse(os.path.exists(self.path("all.json")))


if __name__ == "__main__":
    unittest.main()
