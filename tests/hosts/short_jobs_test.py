#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many jobs that are over soon after their ranks have first reached each other, bound to cores as a user starts them.
Ranks of two hosts are bound to the same core here: one that waits must leave it to the other. Run within
scripts/test-hosts.py.

DIOMP_TEST_SHORT_JOBS: how many, or "30s": as many as fit in that time."""
import os
import subprocess
import time
import unittest

import hosts

PROGRAM = os.environ["DIOMP_TEST_FIRST_CONTACT"]
JOBS = os.environ["DIOMP_TEST_SHORT_JOBS"]
NETWORK = os.environ["DIOMP_TEST_NETWORK"]
RANKS = int(os.environ["DIOMP_TEST_RANKS"])
KINDS = ("put", "threads", "barrier", "get", "leave", "atomic", "large", "alltoall")
# A job takes a second on a busy machine.
TIMEOUT_S = 20
LIMIT_S = 60


class short_jobs_test(unittest.TestCase):
    def run_job(self, kind):
        """None, or what went wrong."""
        command = [os.environ["DIOMP_TEST_RUN"], "--hosts", ",".join(hosts.HOSTS), "--rsh", hosts.RSH, "-n", str(RANKS),
                   "-x", f"DIOMP_NETWORK={NETWORK}", "-x", f"DIOMP_TIMEOUT={TIMEOUT_S}", "--", PROGRAM, kind]
        try:
            done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            return f"not over after {LIMIT_S} s: {(error.stdout or b'').decode(errors='replace')}"
        wanted = {f"rank {rank} of {RANKS}: {kind}" for rank in range(RANKS)}
        if done.returncode != 0 or set(done.stdout.splitlines()) != wanted:
            return f"status {done.returncode}: {done.stdout}"
        return None

    def test_first_connections(self):
        began = time.monotonic()
        failures = []
        number = 0
        while number < int(JOBS) if JOBS.isdigit() else time.monotonic() - began < float(JOBS[:-1]):
            kind = KINDS[number % len(KINDS)]
            wrong = self.run_job(kind)
            number += 1
            if wrong:
                failures.append(f"job {number} ({kind}): {wrong}")
        print(f"{number} jobs in {time.monotonic() - began:.0f} s, {len(failures)} failed")
        self.assertGreaterEqual(number, 1)
        self.assertFalse(failures, "\n".join(failures[:3]))


if __name__ == "__main__":
    unittest.main()
