#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Status and blame of jobs on several hosts in which one rank ends badly: what hosts report arrives in any order."""
import os
import resource
import signal
import subprocess
import unittest

import blame
import hosts

PROGRAM = os.environ["DIOMP_TEST_ENDS_BADLY"]
CONDUIT = os.environ["DIOMP_TEST_CONDUIT"]
ROUNDS = int(os.environ.get("DIOMP_TEST_RUNS", "10"))
RANKS = 2 * len(hosts.HOSTS)
SETTINGS = {"DIOMP_CONDUIT": CONDUIT, "DIOMP_TIMEOUT": "20", "DIOMP_SEGMENT_SIZE": "64M"}


class first_cause_test(unittest.TestCase):
    def setUp(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

    def ends(self, action, **settings):
        for index in range(ROUNDS):
            phase, rank = blame.PHASES[index % len(blame.PHASES)], index % RANKS
            done = subprocess.run(
                hosts.job("diomp-run", [PROGRAM, phase, action, str(rank)], 2, {**SETTINGS, **settings}), text=True,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=3 * hosts.LIMIT_S)
            with self.subTest(phase=phase, round=index):
                blame.check(self, action, rank, done.returncode, done.stderr)

    def test_exit(self):
        self.ends("exit3")

    def test_exit_without_handlers(self):
        self.ends("_exit4")

    def test_exit_zero_without_finalize(self):
        self.ends("_exit0")

    def test_abort(self):
        self.ends("ompx5")

    def test_abort_with_success(self):
        self.ends("ompx0")

    def test_sigkill(self):
        self.ends(str(int(signal.SIGKILL)))

    def test_exit_while_others_leave_by_themselves(self):
        self.ends("exit3", DIOMP_ERRORS="return")


if __name__ == "__main__":
    unittest.main()
