#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/test-hosts.py from outside: statuses, what is left afterwards, two runs at once, machines without it."""
import functools
import os
import signal
import subprocess
import sys
import time
import unittest

import processes

SCRIPT = os.environ["DIOMP_TEST_HOSTS_SCRIPT"]
LIMIT_S = 30
# Each host has one process that carries the mark, the command of the first has another.
HOLD = "$DIOMP_TEST_RSH ${DIOMP_TEST_HOSTS#*,} 'echo ready; exec sleep 76543'"


def allowed_here():
    """'' or why this machine has no test hosts, in a container say."""
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=LIMIT_S)
    return done.stderr.strip() if done.returncode == 77 else ""


def needs_hosts(test):
    @functools.wraps(test)
    def run(self):
        if why := allowed_here():
            self.skipTest(why)
        test(self)
    return run


class outside_test(unittest.TestCase):
    def setUp(self):
        self.mark = processes.new_mark()
        self.environment = dict([*os.environ.items(), self.mark])
        self.before = self.surroundings()

    def tearDown(self):
        self.assertEqual(self.surroundings(), self.before)
        self.assertEqual(self.marked(), [])

    def surroundings(self):
        """What a run must leave alone: the machine's interfaces and mounts."""
        with open("/proc/self/mountinfo") as file:
            mounts = len(file.readlines())
        return sorted(os.listdir("/sys/class/net")), mounts, os.uname().nodename

    def marked(self):
        return processes.carrying(*self.mark)

    def begin(self, command, **options):
        return subprocess.Popen([sys.executable, SCRIPT, "--", "/bin/sh", "-c", command], env=self.environment,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def call(self, *words, **options):
        return subprocess.run([sys.executable, SCRIPT, *words], env=self.environment, text=True,
                              capture_output=True, timeout=LIMIT_S, **options)

    def gone(self):
        deadline = time.monotonic() + LIMIT_S
        while self.marked():
            self.assertLess(time.monotonic(), deadline, "processes are left")

    def held(self):
        process = self.begin(HOLD)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertGreaterEqual(len(self.marked()), 3)
        return process

    @needs_hosts
    def test_status_of_the_command(self):
        for status in (0, 3, 255):
            self.assertEqual(self.call("--", "/bin/sh", "-c", f"exit {status}").returncode, status)
        self.assertEqual(self.call("--", "/bin/sh", "-c", "kill -9 $$").returncode, 137)
        done = self.call("--", "/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("/no/such/program", done.stderr)

    @needs_hosts
    def test_number_of_hosts(self):
        for count in (2, 4):
            done = self.call("--hosts", str(count), "--", "/bin/sh", "-c", "echo $DIOMP_TEST_HOSTS")
            self.assertEqual(len(set(done.stdout.strip().split(","))), count, done.stderr)
        self.assertNotEqual(self.call("--hosts", "33", "--", "true").returncode, 0)

    @needs_hosts
    def test_nothing_is_left_after_the_end(self):
        # The command ends while its children go on, on both hosts.
        done = self.call("--", "/bin/sh", "-c",
                         "sleep 76543 >&- 2>&- & $DIOMP_TEST_RSH ${DIOMP_TEST_HOSTS#*,} "
                         "'sleep 76543 >/dev/null 2>&1 & echo ready'")
        self.assertEqual((done.returncode, done.stdout), (0, "ready\n"), done.stderr)
        self.assertEqual(self.marked(), [])

    def ends_by(self, number):
        process = self.held()
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
        self.assertNotEqual(process.returncode, 0)
        self.gone()

    @needs_hosts
    def test_nothing_is_left_after_interrupt(self):
        self.ends_by(signal.SIGINT)

    @needs_hosts
    def test_nothing_is_left_after_terminate(self):
        self.ends_by(signal.SIGTERM)

    @needs_hosts
    def test_nothing_is_left_after_kill(self):
        self.ends_by(signal.SIGKILL)

    @needs_hosts
    def test_command_may_end_in_good_order(self):
        process = self.begin("trap 'echo ending; exit 9' TERM; echo ready; while :; do sleep 0.01; done")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        self.assertEqual((process.communicate(timeout=LIMIT_S)[0], process.returncode), ("ending\n", 9))

    @needs_hosts
    def test_two_runs_at_once(self):
        report = ("echo $DIOMP_TEST_HOSTS; read go; "
                  "ping -q -c 1 -W 5 ${DIOMP_TEST_HOSTS#*,} >/dev/null && ip -o link | wc -l")
        runs = [self.begin(report, stdin=subprocess.PIPE) for _ in range(2)]
        names = [run.stdout.readline() for run in runs]  # now both exist
        self.assertNotEqual(*names)
        for run in runs:
            out, err = run.communicate("go\n", timeout=LIMIT_S)
            self.assertEqual((run.returncode, out.strip()), (0, "2"), err)

    @needs_hosts
    def test_check(self):
        done = self.call("--check")
        self.assertEqual((done.returncode, done.stdout), (0, "test-hosts: this machine allows them\n"), done.stderr)

    def test_skipped_where_the_machine_does_not_allow_it(self):
        # No more network namespaces than there are: a limit of a user namespace of our own.
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "/bin/sh", "-c",
             "echo 0 >/proc/sys/user/max_net_namespaces && exec \"$@\"", "sh", sys.executable, SCRIPT, "--check"],
            env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
        if done.stderr.startswith("unshare:"):
            self.skipTest("no user namespace to limit: " + done.stderr.strip())
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertRegex(done.stderr, "^test-hosts: skipped: .+\n$")

    def test_skipped_without_tools(self):
        done = subprocess.run([sys.executable, SCRIPT, "--check"], env={**self.environment, "PATH": "/nowhere"},
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stderr, "^test-hosts: skipped: ip is missing .*iproute2.*\n$")

    def test_faults_need_a_run(self):
        done = self.call("link", "anything", "down")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not within a run", done.stderr)


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    sys.exit(77 if done.skipped else not done.wasSuccessful())
