#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that never join their job, or stop while it starts: diomp-run names them."""
import os
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
from job_tools import PROBE, job_case  # noqa: E402 (tests/launch)

# As a rank that has not begun: it is another program, which the second argument names.
ABSENT = 'if [ "$DIOMP_RANK" = 1 ] || [ "$DIOMP_RANK" = "$2" ]; then exec sleep "$1"; fi; exec "$0" exchange'
SHELL = "shift; exec sh -c \"$*\""


class late_ranks_test(job_case):
    def absent(self, ranks, seconds, *options, also=""):
        return self.run_job("-n", str(ranks), *options, "--", "sh", "-c", ABSENT, PROBE, seconds, also)

    def stopped(self, ranks, *options):
        """Rank 1 joins, and does not come to the fence."""
        return self.run_job("-n", str(ranks), *options, "--", PROBE, "stop", "1")

    def on_hosts(self, hosts):
        self.environment["DIOMP_RSH"] = f"sh -c '{SHELL}' rsh"
        return ["--hosts", hosts]

    def test_warning_names_the_rank_that_has_not_joined(self):
        self.environment["DIOMP_WARN_AFTER"] = "0.5"
        _, _, err = self.absent(3, "2")
        self.assertRegex(err, r"diomp-run: warning: rank 1 on \S+ \(pid \d+, sh\) has not joined the job; the others "
                              r"have waited for 0\.5 s")
        self.assertEqual(err.count("warning"), 1, err)

    def test_no_warning_without_a_limit(self):
        self.environment["DIOMP_WARN_AFTER"] = "0"
        _, _, err = self.absent(3, "1")
        self.assertNotIn("warning", err)

    def test_no_warning_about_the_only_rank(self):
        self.environment["DIOMP_WARN_AFTER"] = "0.2"
        status, out, err = self.run_job("-n", "1", "--timeout", "1.5", PROBE, "compute")
        self.assertEqual((status, out), (124, "waiting\n"))
        self.assertNotIn("warning", err)

    def test_time_of_a_suspended_job_does_not_count(self):
        process = self.start("-n", "2", "--verbose", "-x", "DIOMP_WARN_AFTER=3", "--", "sh", "-c", ABSENT, PROBE, "2")
        while "rank 0 joined" not in process.stderr.readline():
            pass
        os.kill(process.pid, signal.SIGTSTP)
        time.sleep(3.5)
        os.kill(process.pid, signal.SIGCONT)
        _, err = process.communicate(timeout=55)
        self.assertNotIn("warning", err)

    def test_several_ranks(self):
        self.environment["DIOMP_WARN_AFTER"] = "0.5"
        _, _, err = self.absent(3, "2", also="2")
        self.assertRegex(err, r"rank 1 on \S+ \(pid \d+, sh\), rank 2 on \S+ \(pid \d+, sh\) have not joined the job;")

    def test_warning_names_the_rank_that_has_stopped(self):
        status, _, err = self.stopped(3, "-x", "DIOMP_WARN_AFTER=0.5", "--timeout", "3")
        self.assertEqual(status, 124)
        self.assertRegex(err, r"warning: rank 1 on \S+ \(pid \d+, \S+probe\) has not reached a fence at the "
                              r"start or end of the job; the others have waited for 0\.5 s")

    def test_timeout_ends_the_job(self):
        self.environment["DIOMP_TIMEOUT"] = "1"  # at least 30
        process = self.start("-n", "2", "--", "sh", "-c", ABSENT, PROBE, "90")
        _, err = process.communicate(timeout=55)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, r"rank 1 on \S+ \(pid \d+, sh\) has not joined the job; the others have waited for 30 s "
                              r"\(DIOMP_TIMEOUT\); ending the job")

    def test_warning_on_several_hosts(self):
        _, _, err = self.absent(4, "2", *self.on_hosts("a:2,b:2"), "-x", "DIOMP_WARN_AFTER=0.5")
        self.assertRegex(err, r"warning: rank 1 on a \(.*sh\) has not joined the job; the others have waited for 0\.5 s")
        self.assertEqual(err.count("warning"), 1, err)

    def test_warning_names_the_host_of_a_rank_that_has_stopped(self):
        status, _, err = self.stopped(4, *self.on_hosts("a:2,b:2"), "-x", "DIOMP_WARN_AFTER=0.5", "--timeout", "4")
        self.assertEqual(status, 124)
        self.assertIn("warning: a rank of host a (ranks 0 to 1) has not reached a fence at the start or end of the job; "
                      "the others have waited for 0.5 s", err)


if __name__ == "__main__":
    unittest.main()
