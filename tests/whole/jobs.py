# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running whole jobs: tests/whole/actor.c under diomp-run, and nothing of it left afterwards.

Every process of a test carries a variable with a value of its own, by which stragglers are found.
"""
import os
import signal
import subprocess
import time
import unittest
import uuid

RUN = os.environ["DIOMP_TEST_RUN"]
ACTOR = os.environ["DIOMP_TEST_ACTOR"]
LIMIT_S = 30
# Ranks of a node that the machine pretends to be many of; "": one for all.
NODE_SIZE = os.environ.get("DIOMP_TEST_NODE_SIZE", "")
# Sanitizers make everything slower by their factor.
SLOWER = int(os.environ.get("DIOMP_TEST_SLOWER", "1"))


class jobs(unittest.TestCase):
    def setUp(self):
        # The settings under test come from the test alone.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("DIOMP_")}
        self.environment["DIOMP_TEST_MARK"] = uuid.uuid4().hex
        if NODE_SIZE:
            self.environment.update(DIOMP_NODE_SIZE=NODE_SIZE, UCX_TLS="tcp")
        self.started = []

    def tearDown(self):
        for process in self.started:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        left = self.marked()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes are left")

    def marked(self):
        """Processes of this test, other than zombies (they have no environment any more)."""
        mark = ("DIOMP_TEST_MARK=" + self.environment["DIOMP_TEST_MARK"]).encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{name}/environ", "rb") as file:
                        if mark in file.read().split(b"\0"):
                            found.append(int(name))
                except OSError:
                    continue
        return found

    def start(self, ranks, *words, settings=None, stdin=subprocess.DEVNULL):
        process = subprocess.Popen(
            [RUN, "-n", str(ranks), "--bind-to", "none", "--", ACTOR, *words],
            env={**self.environment, **(settings or {})}, text=True, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    def act(self, ranks, *words, **settings):
        """(status, standard output, standard error, seconds)"""
        began = time.monotonic()
        process = self.start(ranks, *words, settings=settings)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err, time.monotonic() - began

    def succeeds(self, ranks, *words, **settings):
        """(standard output, standard error) of a job that ends well."""
        status, out, err, _ = self.act(ranks, *words, **settings)
        self.assertEqual(status, 0, err)
        return out, err
