#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user sees of a whole job: statistics, settings, children, two jobs at once, start-up."""
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

import jobs
import processes
from time_limits import SLOWER

# Start-up and exit of 4 ranks. On a machine that does other things too, only the order of
# magnitude can be held to.
START_LIMIT_S = 0.15
START_LIMIT_LOADED_S = 0.5
# What the runtime itself takes per rank, beyond libraries.
RESIDENT_LIMIT_KB = 8 * 1024
ROW = re.compile(r"^  (\S.*?) {2,}(\S*) +(\d+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+$")


def rows(table):
    """{call: [(path, calls, bytes)]}"""
    found = {}
    for line in table.splitlines():
        match = ROW.match(line)
        if match:
            call, path, calls, nbytes = match.groups()
            found.setdefault(call, []).append((path, int(calls), int(nbytes)))
    return found


def sums(table, call):
    """(calls, bytes) over all paths"""
    entries = rows(table).get(call, [])
    return sum(entry[1] for entry in entries), sum(entry[2] for entry in entries)


class whole_test(jobs.jobs):
    # ---- Statistics

    def tables(self, directory, ranks):
        texts = []
        for rank in range(ranks):
            with open(os.path.join(directory, f"stats-{rank}.txt")) as file:
                texts.append(file.read())
        self.assertEqual(len(os.listdir(directory)), ranks)
        return texts

    def test_statistics_go_to_standard_error(self):
        _, err = self.succeeds(1, "count_transfers", DIOMP_STATS="summary")
        self.assertIn("diomp: statistics of rank 0 of 1 on " + os.uname().nodename, err)
        self.assertEqual(sums(err, "ompx_put"), (10, 80))
        self.assertEqual(sums(err, "ompx_get"), (3, 300))

    def test_statistics_by_rank_in_files(self):
        with tempfile.TemporaryDirectory() as directory:
            _, err = self.succeeds(2, "count_transfers", DIOMP_STATS="summary",
                                   DIOMP_STATS_FILE=os.path.join(directory, "stats-%r.txt"))
            self.assertEqual(err, "")
            for rank, text in enumerate(self.tables(directory, 2)):
                self.assertIn(f"statistics of rank {rank} of 2", text.splitlines()[0])
                self.assertEqual(sums(text, "ompx_put"), (10, 80))
                self.assertEqual(sums(text, "ompx_get"), (3, 300))
                self.assertEqual(sums(text, "ompx_alloc"), (1, 4096))
                self.assertNotIn("    at ", text)

    def test_statistics_by_place_in_the_program(self):
        with tempfile.TemporaryDirectory() as directory:
            self.succeeds(2, "count_transfers", DIOMP_STATS="callsites",
                          DIOMP_STATS_FILE=os.path.join(directory, "stats-%r.txt"))
            for text in self.tables(directory, 2):
                self.assertEqual(sums(text, "ompx_put"), (10, 80))
                self.assertEqual(sums(text, "ompx_get"), (3, 300))
                lines = text.splitlines()
                at = next(i for i, line in enumerate(lines) if line.startswith("  ompx_put "))
                self.assertRegex(lines[at + 1], r"^    at .*actor.*0x|^    at count_transfers\+0x")

    def test_no_statistics_unless_asked(self):
        self.assertEqual(self.succeeds(2, "count_transfers"), ("", ""))

    def test_second_level_pointers_are_fetched_once(self):
        ranks = 3
        with tempfile.TemporaryDirectory() as directory:
            self.succeeds(ranks, "count_pointers", DIOMP_STATS="summary",
                          DIOMP_STATS_FILE=os.path.join(directory, "stats-%r.txt"))
            for text in self.tables(directory, ranks):
                fetched = int(re.search(r"second-level pointers fetched: (\d+)", text).group(1))
                found = int(re.search(r"second-level pointers found in the cache: (\d+)", text).group(1))
                # 5 puts to each of the others: the first one fetches.
                self.assertEqual((fetched, found), (ranks - 1, 4 * (ranks - 1)), text)

    # ---- Suspended jobs

    def test_a_job_that_is_suspended_as_a_whole_goes_on(self):
        for setting in ({}, {"DIOMP_CONDUIT": "tcp"}):
            with self.subTest(setting):
                job = self.start(3, "exchange_for_two_seconds", settings={"DIOMP_TIMEOUT": "1", **setting})
                time.sleep(0.7)
                ranks = [pid for pid in processes.carrying(*self.mark) if os.path.samefile(f"/proc/{pid}/exe", jobs.ACTOR)]
                self.assertEqual(len(ranks), 3)
                for pid in ranks:
                    os.kill(pid, signal.SIGSTOP)
                time.sleep(2)
                for pid in ranks:
                    os.kill(pid, signal.SIGCONT)
                _, err = job.communicate(timeout=jobs.LIMIT_S)
                self.assertEqual((job.returncode, err), (0, ""))

    # ---- Settings

    def test_malformed_settings_end_the_job_at_its_start(self):
        for name, value, expected in (("DIOMP_SEGMENT_SIZE", "12Q", "a size such as"),
                                      ("DIOMP_TIMEOUT", "soon", "a number of seconds"),
                                      ("DIOMP_ERRORS", "ignore", "abort, return"),
                                      ("DIOMP_STATS", "yes", "off, summary, callsites"),
                                      ("DIOMP_SEGMENT_BASE", "0x1234", "multiple of 1 GiB")):
            with self.subTest(name):
                status, _, err, _ = self.act(2, "where", **{name: value})
                self.assertNotEqual(status, 0)
                self.assertRegex(err, rf"rank [01] .*: ompx_init\(\): {name}={value}: '{value}' is not "
                                      rf".*{expected}.*\[remedy: {name} is .*default")

    def test_a_segment_that_no_machine_has_is_named(self):
        for size in ("18446744073709551615", "18446744073705000000", "100T"):
            with self.subTest(size):
                status, _, err, _ = self.act(2, "where", DIOMP_SEGMENT_SIZE=size)
                self.assertNotEqual(status, 0)
                self.assertRegex(err, r"rank [01] .*: ompx_init\(\): segments of .* do not fit into the address arena"
                                      r".*\[remedy: set DIOMP_SEGMENT_SIZE")

    def test_unknown_setting_is_warned_about_once(self):
        _, err = self.succeeds(3, "count_transfers", DIOMP_FOO="1")
        self.assertRegex(err, r"^diomp: .*warning: DIOMP_FOO is not a setting of DiOMP; .*--settings.*\n$")

    def test_variables_of_the_compiler_wrappers_are_not_warned_about(self):
        _, err = self.succeeds(1, "count_transfers", DIOMP_CC="clang", DIOMP_CXX="clang++", DIOMP_FC="flang",
                               DIOMP_LLVM_TOOLCHAIN="/nowhere", DIOMP_LLVM="", DIOMP_ROOT="/opt/diomp",
                               DIOMP_DIR="/opt/diomp")
        self.assertEqual(err, "")

    def test_segment_size(self):
        out, _ = self.succeeds(2, "where", DIOMP_SEGMENT_SIZE="1M")
        self.assertEqual([line.split()[2] for line in out.splitlines()], [str(1 << 20)] * 2)

    def test_segment_base(self):
        base = 0x300000000000
        out, _ = self.succeeds(2, "where", DIOMP_SEGMENT_BASE=hex(base), DIOMP_SEGMENT_SIZE="64M")
        bases = sorted(int(line.split()[1], 16) for line in out.splitlines())
        self.assertEqual(len(bases), 2)
        for address in bases:
            self.assertTrue(base <= address < base + (1 << 30), hex(address))
        usual, _ = self.succeeds(2, "where", DIOMP_SEGMENT_SIZE="64M")
        self.assertNotIn(hex(bases[0]), usual)

    # ---- Children

    def test_child_that_exits(self):
        self.assertEqual(self.succeeds(3, "fork_and_exit"), ("", ""))

    def test_child_that_calls(self):
        _, err = self.succeeds(2, "fork_and_call")
        self.assertEqual(len(re.findall(r"ompx_barrier\(.*\): called in a child process", err)), 2, err)

    def test_command_of_a_rank(self):
        self.assertEqual(self.succeeds(3, "run_command"), ("", ""))

    # ---- Jobs

    def test_alone_it_is_a_world_of_one(self):
        result = subprocess.run([jobs.ACTOR, "where"], env=self.environment, capture_output=True,
                                text=True, timeout=jobs.LIMIT_S)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^0 0x[0-9a-f]+ \d+\n$")

    def test_computing_rank_stalls_nobody(self):
        for attach in ("on", "off"):
            with self.subTest(attach):
                self.assertEqual(self.succeeds(3, "compute", DIOMP_CMA=attach), ("", ""))

    def test_log_names_conduit_and_segment(self):
        _, err = self.succeeds(2, "where", DIOMP_LOG="info", DIOMP_SEGMENT_SIZE="64M")
        for rank in range(2):
            self.assertRegex(err, rf"info: rank {rank} of 2 on .*: conduit shm, segment 64 MiB at 0x")

    def test_resident_memory_of_a_rank(self):
        out, _ = self.succeeds(4, "resident")
        sizes = [int(line) for line in out.splitlines()]
        self.assertEqual(len(sizes), 4)
        if SLOWER == 1:  # sanitizers keep shadows
            self.assertLess(max(sizes), RESIDENT_LIMIT_KB)

    def test_two_jobs_at_once_do_not_see_each_other(self):
        both = [self.start(2, "in_steps", seed, stdin=subprocess.PIPE) for seed in ("1", "101")]
        # Both are at the same stage before either goes on.
        for stage in ("ready", "written"):
            for job in both:
                self.assertEqual(job.stdout.readline(), stage + "\n")
            for job in both:
                job.stdin.write("go\n")
                job.stdin.flush()
        for job in both:
            _, err = job.communicate(timeout=jobs.LIMIT_S)
            self.assertEqual((job.returncode, err), (0, ""))

    def test_ranks_that_leave_late(self):
        # Far more ranks than cores: some leave the last meeting when others are gone already.
        for _ in range(15):
            self.succeeds(8, "nothing", DIOMP_TIMEOUT="10")

    def test_start_and_end_of_many_nodes_open_few_connections(self):
        # A tree has one connection less than ranks; a barrier by exchanges would open 80.
        ranks = 32
        _, err = self.succeeds(ranks, "nothing", DIOMP_NODE_SIZE="1", DIOMP_NETWORK="tcp", DIOMP_LOG="tcp:debug",
                               DIOMP_SEGMENT_SIZE="1M")
        opened = re.findall(r"\[(\d+)@.*tcp: connecting to rank (\d+)", err)
        pairs = {tuple(sorted((int(a), int(b)))) for a, b in opened}
        self.assertEqual(len(pairs), ranks - 1, sorted(pairs))

    def test_start_and_exit_of_four_ranks(self):
        loaded = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
        limit = (START_LIMIT_LOADED_S if loaded else START_LIMIT_S) * SLOWER
        times = []
        for _ in range(5):
            began = time.monotonic()
            self.succeeds(4, "nothing")
            times.append(time.monotonic() - began)
        print(f"start-up and exit of 4 ranks: median {statistics.median(times):.3f} s, limit {limit} s")
        self.assertLess(statistics.median(times), limit)


if __name__ == "__main__":
    unittest.main()
