#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Harm to ranks, hosts and network while tests/hosts/endure.c runs on two hosts. A job either goes on with right
results, or it ends within DIOMP_TIMEOUT on every rank, with a message that names the peer, its host and what was
outstanding. Run within scripts/test-hosts.py."""
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import hosts
from time_limits import scaled

PROGRAM = os.environ["DIOMP_TEST_ENDURE"]
LAUNCHER = os.environ.get("DIOMP_TEST_LAUNCHER", "diomp-run")
CONDUIT = os.environ.get("DIOMP_TEST_CONDUIT", "auto")
NAME = os.path.basename(PROGRAM)
FIRST, OTHER = hosts.HOSTS[:2]
TIMEOUT_S = round(min(scaled(4), 20))
# What ending may take beyond DIOMP_TIMEOUT: signals to other ranks, their grace, a machine that does other things.
MARGIN_S = round(min(scaled(6), 20))
# For a job that is to end well.
LIMIT_S = 60
# A fault that is over before DIOMP_TIMEOUT is.
SHORT_S = 1.5
MANY_ROUNDS = 1000000


class endurance:
    """A job, its output by lines, and each rank's errors."""

    def __init__(self, *words, per_host=1, **settings):
        self.directory = tempfile.mkdtemp(dir=os.getcwd(), prefix="endure-")
        prefix = os.path.join(self.directory, "rank")
        command = hosts.job(LAUNCHER, [PROGRAM, *map(str, words)], per_host,
                            {"DIOMP_TIMEOUT": str(TIMEOUT_S), "DIOMP_TEST_LOG": prefix, "DIOMP_CONDUIT": CONDUIT,
                             **settings})
        self.ranks = per_host * len(hosts.HOSTS)
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.lines = queue.Queue()
        self.output = ""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.output += line
            self.lines.put(line.strip())
        self.lines.put(None)

    def until(self, wanted, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no '{wanted}' within {limit_s} s; so far:\n{self.everything()}") from None
            if line is None:
                raise AssertionError(f"ended before '{wanted}':\n{self.everything()}")
            if line == wanted:
                return

    def tell(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def errors(self, rank):
        try:
            with open(os.path.join(self.directory, f"rank.{rank}")) as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def everything(self):
        return self.output + "".join(f"-- rank {rank}:\n{self.errors(rank)}" for rank in range(self.ranks))

    def close(self):
        self.process.kill()
        self.process.wait()
        for host in hosts.HOSTS:
            hosts.console(host, f"pkill -KILL -x {NAME}")
        self.reader.join(5)
        shutil.rmtree(self.directory)


class faults_test(unittest.TestCase):
    def begin(self, *words, **options):
        job = endurance(*words, **options)
        self.addCleanup(job.close)
        return job

    def running(self):
        job = self.begin("rounds", MANY_ROUNDS)
        job.until("round 3")
        return job

    def asked(self, *words, **settings):
        """A job whose rank 0 waits to be told."""
        job = self.begin(*words, **settings)
        job.until("ready")
        return job

    def ranks_on(self, host):
        status, output = hosts.console(host, f"pgrep -x {NAME}")
        return [int(word) for word in output.split()] if status == 0 else []

    def signal(self, name):
        """To the ranks of the other host."""
        pids = self.ranks_on(OTHER)
        self.assertTrue(pids)
        hosts.send_signal(OTHER, name, pids)

    def gone_within(self, host, seconds, job):
        deadline = time.monotonic() + seconds
        while self.ranks_on(host):
            self.assertLess(time.monotonic(), deadline, f"ranks are left on {host}:\n{job.everything()}")
            time.sleep(0.05)

    def ends(self, job, limit_s=TIMEOUT_S + MARGIN_S):
        """The job fails on every host, in time."""
        began = time.monotonic()
        try:
            status = job.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.fail(f"the job is not over {limit_s} s after the fault:\n{job.everything()}")
        job.reader.join(5)
        self.assertNotEqual(status, 0, job.everything())
        for host in hosts.HOSTS:
            self.gone_within(host, max(1.0, limit_s - (time.monotonic() - began)), job)

    def names(self, text, rank, host, job):
        """A message that names the peer and where it is."""
        self.assertRegex(text, rf"rank {rank}\b.*{host}|{host} \(ranks {rank} to {rank}\)", job.everything())

    def is_not_over(self, job):
        """The fault has not come too late."""
        self.assertIsNone(job.process.poll(), job.everything())

    def goes_on(self, job, limit_s=LIMIT_S):
        try:
            status = job.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.fail(f"not over after {limit_s} s:\n{job.everything()}")
        job.reader.join(5)
        self.assertEqual(status, 0, job.everything())

    def goes_on_and_ends(self, job):
        """A job without a number of rounds does some more, and ends well when it is told to."""
        while not job.lines.empty():
            job.lines.get()
        for _ in range(4):
            self.assertRegex(job.lines.get(timeout=LIMIT_S) or "", r"^round \d+$", job.everything())
        job.tell()
        self.goes_on(job)

    # ---- A rank

    def test_killed_rank(self):
        job = self.running()
        self.signal("KILL")
        self.ends(job)
        self.names(job.everything(), 1, OTHER, job)

    def test_stopped_rank_that_goes_on(self):
        job = self.begin("rounds")
        job.until("round 3")
        self.signal("STOP")
        time.sleep(SHORT_S)  # how long it stands still, not a wait for something
        self.is_not_over(job)
        self.signal("CONT")
        self.goes_on_and_ends(job)

    def stopped_before(self, *words):
        job = self.asked(*words)
        self.signal("STOP")
        job.tell()
        self.ends(job)
        return job

    def test_stopped_rank(self):
        job = self.running()
        self.signal("STOP")
        self.ends(job)
        self.names(job.errors(0), 1, OTHER, job)

    def test_get_from_a_stopped_rank(self):
        job = self.stopped_before("get")
        self.names(job.errors(0), 1, OTHER, job)
        self.assertRegex(job.errors(0), "get of 8 bytes", job.everything())

    def test_lock_of_a_stopped_rank(self):
        job = self.stopped_before("lock")
        self.names(job.errors(0), 1, OTHER, job)
        self.assertRegex(job.errors(0), "lock", job.everything())

    def test_atomic_at_a_stopped_rank(self):
        job = self.stopped_before("atomic")
        self.names(job.errors(0), 1, OTHER, job)
        self.assertRegex(job.errors(0), "atomic operations|bytes of messages", job.everything())

    # ---- A full send queue

    def test_flood_to_a_stopped_rank_that_goes_on(self):
        # The other rank waits in a barrier all the while.
        job = self.asked("flood", 1000000, DIOMP_TIMEOUT="30")
        self.signal("STOP")
        job.tell()
        time.sleep(SHORT_S)  # how long it stands still
        self.is_not_over(job)
        self.signal("CONT")
        job.until("sent")
        job.until("fenced")
        self.goes_on(job)

    def test_flood_to_a_stopped_rank(self):
        job = self.stopped_before("flood", 1000000)
        self.names(job.errors(0), 1, OTHER, job)
        self.assertRegex(job.errors(0), r"outstanding: .* put\(s\)", job.everything())

    # ---- The network

    def are_cut_off(self, job):
        self.ends(job)
        # The first host is told by its rank or by diomp-run, whoever is earlier; the other by its rank alone.
        self.names(job.everything(), 1, OTHER, job)
        # It may wait for its own lock, which the first rank holds.
        self.assertRegex(job.errors(1), rf"rank 0\b.*{FIRST}|timed out after .*\block of rank 1\b", job.everything())

    def test_link_down(self):
        job = self.running()
        hosts.link(OTHER, "down")
        self.are_cut_off(job)

    def test_cable_out(self):
        job = self.running()
        hosts.cable(OTHER, "out")
        self.are_cut_off(job)

    def test_cable_out_and_in_again(self):
        job = self.begin("rounds")
        job.until("round 3")
        hosts.cable(OTHER, "out")
        time.sleep(SHORT_S)  # how long the cable is out
        self.is_not_over(job)
        hosts.cable(OTHER, "in")
        self.goes_on_and_ends(job)

    def test_host_without_power(self):
        job = self.running()
        hosts.cable(OTHER, "out")
        hosts.console(OTHER, "kill -KILL -1")
        self.ends(job)
        self.names(job.everything(), 1, OTHER, job)

    def test_loss_and_delay(self):
        for host in hosts.HOSTS:
            hosts.netem(host, loss_percent=5, delay_ms=50)
        self.goes_on(self.begin("rounds", 4, DIOMP_TIMEOUT="30"))

    def test_loss_and_delay_in_the_middle(self):
        job = self.begin("rounds", MANY_ROUNDS, DIOMP_TIMEOUT="30")
        job.until("round 2")
        hosts.netem(OTHER, loss_percent=5, delay_ms=50)
        # What has been said before the fault is in the queue: count from here.
        while not job.lines.empty():
            job.lines.get()
        for _ in range(4):
            self.assertRegex(job.lines.get(timeout=LIMIT_S) or "", r"^round \d+$", job.everything())
        self.is_not_over(job)


if __name__ == "__main__":
    hosts.skip_unless_there(LAUNCHER)
    unittest.main()
