#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/find-stalls finds no stall beside programs that come and go, and one that is made: a rank that is stopped."""
import os
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
LIMIT_S = 60
STOPPED_S = 0.3


def ranks_of(launcher):
    """Processes of bench_stalls below the launcher."""
    found, parents = [], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().rsplit(") ", 1)
            except OSError:  # it has ended
                continue
            parents[int(entry.name)] = (int(rest.split()[1]), name.split("(", 1)[1])
    for pid, (parent, name) in parents.items():
        while parent in parents and parent != launcher:
            parent = parents[parent][0]
        if parent == launcher and name == "bench_stalls":
            found.append(pid)
    return found


class stalls_test(unittest.TestCase):
    def find_stalls(self, *options):
        done = subprocess.run([sys.executable, SCRIPT, "--build", BUILD, *options], text=True, timeout=LIMIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no stall: limit 50 ms", done.stdout)
        rounds = int(re.search(r"^(\d+) rounds", done.stdout, re.MULTILINE).group(1))
        rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
        ranks = int(re.search(r"^bench_stalls +(\d+) ranks", done.stdout, re.MULTILINE).group(1))
        for column in (1, 2, 3):  # allreduce, barrier, signal
            self.assertEqual(sum(int(row[column]) for row in rows), rounds * ranks, done.stdout)

    def test_two_ranks_beside_programs_that_come_and_go(self):
        self.find_stalls("--seconds", "6", "--hogs", "3")

    def test_more_ranks_than_most_machines_have_cores_for(self):
        self.find_stalls("--seconds", "4", "--ranks", "4", "--hogs", "1", "--seed", "2")

    def test_a_rank_that_is_stopped_is_a_stall(self):
        command = [BUILD / "bin" / "diomp-run", "-n", "2", "--bind-to", "none", "--timeout", "50", "--",
                   BUILD / "bench" / "bench_stalls", "--seconds", "3"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
            self.assertIn("bench_stalls  2 ranks", job.stdout.readline())
            ranks = ranks_of(job.pid)
            self.assertEqual(len(ranks), 2)
            os.kill(ranks[0], signal.SIGSTOP)
            with self.assertRaises(subprocess.TimeoutExpired):
                job.wait(STOPPED_S)
            os.kill(ranks[0], signal.SIGCONT)
            out, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 1, out + err)
        worst = re.search(r"^unexplained|^ *([0-9.]+) +([0-9.]+)(?: +[0-9.]+){4} +\d (?:allreduce|barrier|signal)",
                          out.split("after s\n", 1)[1], re.MULTILINE)
        self.assertGreater(float(worst.group(2)), STOPPED_S * 1000 * 0.9, out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
