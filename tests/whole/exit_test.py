#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that end while another thread of theirs is in a call: they end with their own status."""
import os
import resource
import signal
import subprocess
import tempfile
import time
import unittest

import jobs
from time_limits import SLOWER, scaled

LEAVER = os.environ["DIOMP_TEST_LEAVER"]
# A race each time: some crashed in nine of ten runs, some in one of thirty.
RUNS = int(os.environ.get("DIOMP_TEST_RUNS", "5"))
CONDUITS = {"shm": {}, "tcp": {"DIOMP_CONDUIT": "tcp"}}
if os.environ.get("DIOMP_TEST_HAS_UCX") == "1":
    CONDUITS["ucx"] = {"DIOMP_CONDUIT": "ucx", "UCX_TLS": "tcp"}
CALLS = ["put", "fence", "large", "get", "atomic", "lock", "memory", "wait"]


class exit_test(jobs.jobs):
    def run_leaver(self, who, call, status, ranks, settings):
        return subprocess.run(
            [jobs.RUN, "-n", str(ranks), "--bind-to", "none", "--", LEAVER, who, call, str(status)],
            env={**self.environment, **settings}, text=True, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=jobs.LIMIT_S, check=False)

    def leave(self, who, call, status=0, ranks=2, **settings):
        """Standard error."""
        process = self.run_leaver(who, call, status, ranks, settings)
        self.assertEqual(process.returncode, status, process.stderr)
        return process.stderr

    def every_call(self, who, settings, status=0):
        for call in CALLS:
            for run in range(RUNS):
                with self.subTest(call=call, run=run):
                    err = self.leave(who, call, status, **settings)
                    if status == 0:
                        # A lock that the thread holds at this moment is worth a warning.
                        self.assertNotIn("error", err)

    def test_main_returns_shm(self):
        self.every_call("main", CONDUITS["shm"])

    def test_main_returns_tcp(self):
        self.every_call("main", CONDUITS["tcp"])

    def test_main_returns_ucx(self):
        self.every_call("main", CONDUITS.get("ucx", CONDUITS["tcp"]))

    def test_another_thread_calls_exit_shm(self):
        self.every_call("thread", CONDUITS["shm"])

    def test_another_thread_calls_exit_tcp(self):
        self.every_call("thread", CONDUITS["tcp"])

    def test_another_thread_calls_exit_ucx(self):
        self.every_call("thread", CONDUITS.get("ucx", CONDUITS["tcp"]))

    def test_one_rank_goes_on_while_the_others_have_ended(self):
        for name, settings in CONDUITS.items():
            for call in ("fence", "atomic", "get"):
                for run in range(RUNS):
                    with self.subTest(conduit=name, call=call, run=run):
                        self.leave("one_thread", call, **settings)

    def test_own_status_survives(self):
        for name, settings in CONDUITS.items():
            for who in ("main", "thread"):
                for call in ("fence", "wait"):
                    for run in range(RUNS):
                        with self.subTest(conduit=name, who=who, call=call, run=run):
                            self.leave(who, call, 7, ranks=1, **settings)

    def test_no_rank_crashes_when_all_fail(self):
        # Which status the job has is the launcher's choice: the first to end is lost for the others.
        for name, settings in CONDUITS.items():
            for who in ("main", "thread"):
                for call in CALLS:
                    for run in range(RUNS // 2):
                        with self.subTest(conduit=name, who=who, call=call, run=run):
                            process = self.run_leaver(who, call, 7, 2, settings)
                            self.assertIn(process.returncode, (1, 7), process.stderr)
                            self.assertNotIn("killed by signal", process.stderr)

    def test_exit_handlers_may_still_call(self):
        for name, settings in CONDUITS.items():
            for ranks in (1, 2):
                with self.subTest(conduit=name, ranks=ranks):
                    self.assertEqual(self.leave("exit_handler", "put", ranks=ranks, DIOMP_ERRORS="return", **settings), "")

    def test_quick_exit_of_all_ranks(self):
        for name, settings in CONDUITS.items():
            with self.subTest(conduit=name):
                self.leave("quick_exit", "fence", 7, ranks=1, **settings)

    def test_core_files_are_small(self):
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            pattern = file.read().strip()
        if "/" in pattern or pattern.startswith("|"):
            self.skipTest(f"core files do not stay in the rank's folder: core_pattern is '{pattern}'")
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            _, most = resource.getrlimit(resource.RLIMIT_CORE)
            if 0 <= most < 1 << 30:
                self.skipTest(f"core files are limited to {most} bytes")
            process = subprocess.run(
                [jobs.RUN, "-n", "2", "--bind-to", "none", "--", jobs.ACTOR, "die"],
                env=self.environment, text=True, stdin=subprocess.DEVNULL, capture_output=True, cwd=folder,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)),
                timeout=jobs.LIMIT_S, check=False)
            self.assertEqual(process.returncode, 128 + signal.SIGSEGV, process.stderr)
            self.assertLess(time.monotonic() - began, scaled(5))
            sizes = [os.stat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder)]
            self.assertTrue(sizes, "no core file, though the limit allows one")
            if SLOWER == 1:  # shadow memory is not ours
                self.assertLess(max(sizes), 64 << 20)

    def test_children_of_a_rank_end_as_they_like(self):
        for name, settings in CONDUITS.items():
            for behaviour in ("fork_and_exit", "fork_and_call", "fork_and_finalize", "fork_and_abort", "fork_and_exec"):
                with self.subTest(conduit=name, behaviour=behaviour):
                    _, err = self.succeeds(2, behaviour, **settings)
                    refused = {"fork_and_call": "ompx_barrier", "fork_and_finalize": "ompx_finalize"}.get(behaviour)
                    self.assertEqual(err.count(" error: "), 2 if refused else 0, err)
                    if refused:
                        self.assertIn(f"{refused}(", err)
                        self.assertIn("called in a child process that a rank forked", err)

    def test_exec_after_the_start_is_named(self):
        for name, settings in CONDUITS.items():
            with self.subTest(conduit=name):
                status, _, err, _ = self.act(2, "exec_after_start", **settings)
                self.assertNotEqual(status, 0)
                self.assertRegex(err, r"this process has joined its job already, as rank 1 of 2, and has then executed "
                                      r"another program: .*remedy: call exec before the runtime starts")

    def test_exec_before_the_start_joins(self):
        process = subprocess.run(
            [jobs.RUN, "-n", "2", "--bind-to", "none", "--", "sh", "-c", f"exec env SOME=thing '{jobs.ACTOR}' where"],
            env=self.environment, text=True, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=jobs.LIMIT_S, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(sorted(line.split()[0] for line in process.stdout.splitlines()), ["0", "1"])

    def test_killed_processes_leave_no_file_of_libomp(self):
        # As libomp makes it; the process plays its part.
        make = 'echo lib > "/dev/shm/__KMP_REGISTERED_LIB_$$_$(id -u)"; echo $$ > "$0.$$";'
        stranger = f"/dev/shm/__KMP_REGISTERED_LIB_{os.getpid()}_{os.getuid()}"
        with tempfile.TemporaryDirectory() as folder, open(stranger, "w", encoding="utf-8"):
            self.addCleanup(os.unlink, stranger)
            started = os.path.join(folder, "pid")
            # An orphan that sleeps until the job ends, and a rank that is killed.
            child = f"{make} exec sleep 100"
            rank = f"sh -c '{child}' {started} & {make} while [ $(ls {folder} | wc -l) -lt 2 ]; do sleep 0.1; done; kill -9 $$"
            process = subprocess.run(
                [jobs.RUN, "-n", "1", "--", "sh", "-c", rank, started], env=self.environment, text=True,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=jobs.LIMIT_S, check=False)
            self.assertEqual(process.returncode, 128 + signal.SIGKILL, process.stderr)
            pids = [name.rpartition(".")[2] for name in os.listdir(folder)]
            self.assertEqual(len(pids), 2)
            left = [pid for pid in pids if os.path.exists(f"/dev/shm/__KMP_REGISTERED_LIB_{pid}_{os.getuid()}")]
            self.assertEqual(left, [])
            self.assertTrue(os.path.exists(stranger), "the file of a process that is no child is gone")

    def test_exit_in_a_handler_inside_a_call_is_named(self):
        process = subprocess.run(
            [jobs.RUN, "-n", "2", "--bind-to", "none", "--", LEAVER, "signal_handler", "wait"],
            env=self.environment, text=True, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=jobs.LIMIT_S, check=False)
        self.assertRegex(process.stderr, r"exit\(\) was called inside ompx_wait_until: the rank ends without waiting")


if __name__ == "__main__":
    unittest.main()
