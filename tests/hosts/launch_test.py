#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start and end of jobs on several hosts, by tests/launch/probe.cpp: launchers alone, no conduit."""
import os
import re
import subprocess
import time
import unittest

import hosts

PROBE = os.environ["DIOMP_TEST_PROBE"]
LAUNCHER = os.environ["DIOMP_TEST_LAUNCHER"]
# Ends everywhere, although only one host knows of the reason at first.
END_LIMIT_S = 15


class launch_test(unittest.TestCase):
    def run_probe(self, *words, per_host=2, limit_s=hosts.LIMIT_S):
        done = subprocess.run(hosts.job(LAUNCHER, [PROBE, *words], per_host), text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s)
        self.nothing_is_left(done.stdout)
        return done.returncode, done.stdout

    def nothing_is_left(self, output):
        deadline = time.monotonic() + END_LIMIT_S
        for host in hosts.HOSTS:
            while hosts.console(host, "pgrep -x launch_probe")[1]:
                self.assertLess(time.monotonic(), deadline, f"ranks are left on {host}: {output}")

    def ranks_know_their_place(self, per_host):
        status, output = self.run_probe("exchange", per_host=per_host)
        self.assertEqual(status, 0, output)
        count = per_host * len(hosts.HOSTS)
        found = set(re.findall(r"describe: \S+ (rank .*), in ", output))
        expected = set()
        for rank in range(count):
            node, local = divmod(rank, per_host)
            ranks = ",".join(str(node * per_host + i) for i in range(per_host))
            expected.add(f"rank {rank} of {count} on {hosts.HOSTS[node]}, local {local} of {per_host} ({ranks})")
        self.assertEqual(found, expected, output)
        self.assertEqual(len(set(re.findall(r"describe: .*, in (\S+)", output))), 1, output)

    def test_values_and_places_of_one_rank_per_host(self):
        self.ranks_know_their_place(1)

    def test_values_and_places_of_two_ranks_per_host(self):
        self.ranks_know_their_place(2)

    def test_values_and_places_of_five_ranks_per_host(self):
        self.ranks_know_their_place(5)

    def is_status_5(self, status, output):
        if LAUNCHER == "srun-pmi2":  # PMI-2 in Slurm kills the job, without a status of its own
            self.assertNotEqual(status, 0, output)
        else:
            self.assertEqual(status, 5, output)

    def test_abort_on_the_last_host_ends_all(self):
        last = 2 * len(hosts.HOSTS) - 1
        status, output = self.run_probe("abort", str(last), "5")
        self.is_status_5(status, output)
        if LAUNCHER != "hydra":  # which drops what its ranks said last
            self.assertIn("own message", output)

    def test_abort_of_all_ranks_at_once(self):
        for per_host in (1, 2):
            status, output = self.run_probe("abort_all", "5", per_host=per_host)
            self.is_status_5(status, output)

    def test_crash_on_the_last_host_ends_all(self):
        last = 2 * len(hosts.HOSTS) - 1
        status, output = self.run_probe("crash", str(last))
        self.assertNotEqual(status, 0, output)
        name = hosts.HOSTS[-1]
        # mpirun does not always get to know which one it was; mpiexec.hydra may trip over the end of its own proxy.
        self.assertRegex(output, rf"rank {last}\b.*{name}|{name}: task {last}: Aborted|"
                                 rf"job has been aborted|RUNNING AT {name}|control_cb .* assert", output)

    def test_launcher_that_is_killed(self):
        process = subprocess.Popen(hosts.job(LAUNCHER, [PROBE, "watch", "-1"], 2), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2 * len(hosts.HOSTS)):
            self.assertEqual(process.stdout.readline(), "waiting\n")
        process.kill()
        process.wait()
        self.nothing_is_left("")
        process.stdout.close()


if __name__ == "__main__":
    hosts.skip_unless_there(LAUNCHER)
    unittest.main()
