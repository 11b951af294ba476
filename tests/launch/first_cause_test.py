#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Status and blame of jobs in which one rank ends badly. On networks its peers notice the end by their connections,
often before diomp-run can reap it: each case runs often enough to meet that race."""
import os
import resource
import unittest

import blame
from job_tools import job_case

PROGRAM = os.environ["DIOMP_TEST_ENDS_BADLY"]
CONDUIT = os.environ["DIOMP_TEST_CONDUIT"]
ROUNDS = int(os.environ.get("DIOMP_TEST_RUNS", "10"))


class first_cause_test(job_case):
    def setUp(self):
        super().setUp()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        self.environment.update(DIOMP_CONDUIT=CONDUIT, DIOMP_TIMEOUT="20", DIOMP_SEGMENT_SIZE="64M")

    def ends(self, action):
        for index in range(ROUNDS):
            phase, rank = blame.PHASES[index % len(blame.PHASES)], index % 3
            status, _, err = self.run_job("-n", "3", "--bind-to", "none", PROGRAM, phase, action, str(rank))
            with self.subTest(phase=phase, round=index):
                blame.check(self, action, rank, status, err)

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
        self.ends("9")

    def test_sigsegv(self):
        self.ends("11")

    def test_sigabrt(self):
        self.ends("6")

    def test_exit_while_others_leave_by_themselves(self):
        self.environment["DIOMP_ERRORS"] = "return"
        self.ends("exit3")

    def test_sigkill_while_others_leave_by_themselves(self):
        self.environment["DIOMP_ERRORS"] = "return"
        self.ends("9")

    def test_sigkill_without_stacks(self):
        self.environment["DIOMP_STACKS"] = "off"
        self.ends("9")


if __name__ == "__main__":
    unittest.main()
