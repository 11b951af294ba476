# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running whole jobs: tests/whole/actor.c under diomp-run, and nothing of it left afterwards.

Every process of a test carries a variable with a value of its own, by which stragglers are found.
"""
import os
import subprocess
import time
import unittest

import processes

RUN = os.environ["DIOMP_TEST_RUN"]
ACTOR = os.environ["DIOMP_TEST_ACTOR"]
LIMIT_S = 30
# Ranks of a node that the machine pretends to be many of; "": one for all.
NODE_SIZE = os.environ.get("DIOMP_TEST_NODE_SIZE", "")


class jobs(unittest.TestCase):
    def setUp(self):
        # The settings under test come from the test alone.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("DIOMP_")}
        self.mark = processes.new_mark()
        self.environment |= [self.mark]
        if NODE_SIZE:
            self.environment.update(DIOMP_NODE_SIZE=NODE_SIZE)
        self.started = []

    def tearDown(self):
        for process in self.started:
            processes.close_pipes(process)
        processes.end_all(self, processes.carrying(*self.mark))

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
