# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of whole jobs share.

Every process of a test carries a variable with a value of its own, by which stragglers are found.
Waiting is for an event, with a limit; nothing depends on how long a sleep takes.
"""
import contextlib
import os
import select
import signal
import subprocess
import time
import unittest

import processes
from time_limits import scaled

RUN = os.environ["DIOMP_TEST_RUN"]
PROBE = os.environ["DIOMP_TEST_PROBE"]
LIMIT_S = 30
# A job must be over this long after a rank fails, on an idle machine.
END_LIMIT_S = 2.0
GRACE_S = 1.0  # grace_s of diomp-run


class job_case(unittest.TestCase):
    def setUp(self):
        # Tests may run in the background of a shell, or under nohup; diomp-run would keep ignoring these.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self.mark = processes.new_mark()
        self.environment = dict([*os.environ.items(), self.mark])
        self.started = []

    def tearDown(self):
        for process in self.started:
            processes.close_pipes(process)
        processes.end_all(self, self.marked())

    # ---- Tools

    def start(self, *words, **how):
        how.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([RUN, *words], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        self.started.append(process)
        return process

    def run_job(self, *words, **how):
        """(status, standard output, standard error)"""
        text = how.pop("input", None)
        if text is not None:
            how["stdin"] = subprocess.PIPE
        process = self.start(*words, **how)
        out, err = process.communicate(text, timeout=LIMIT_S)
        return process.returncode, out, err

    def shell(self, ranks, script, *options, **how):
        return self.run_job("-n", str(ranks), *options, "--", "sh", "-c", script, **how)

    def start_ignoring(self, names, *words):
        """diomp-run started as nohup and background jobs of shells are: with signals ignored."""
        process = subprocess.Popen(["sh", "-c", f'trap "" {names}; exec "$@"', "sh", RUN, *words],
                                   env=self.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    @staticmethod
    def ignored_by(pid):
        """The numbers of the signals that a process ignores."""
        with open(f"/proc/{pid}/status") as file:
            mask = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn:"))
        return {number for number in range(1, 32) if mask >> (number - 1) & 1}

    def limited(self, limits, line):
        """diomp-run under the limits that shell commands set."""
        process = subprocess.Popen(["sh", "-c", f"{limits}; exec {RUN} {line}"], env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(process)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err

    def marked(self):
        return processes.carrying(*self.mark)

    @staticmethod
    def command(pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0]

    def wait_until(self, condition, what):
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"waited {LIMIT_S} s for {what}")
            select.select([], [], [], 0.01)

    def read_lines(self, process, count):
        return [process.stdout.readline().rstrip("\n") for _ in range(count)]

    def one_message(self, err):
        lines = [line for line in err.splitlines() if line.startswith("diomp-run: ")]
        self.assertEqual(len(lines), 1, err)
        return lines[0]

    @contextlib.contextmanager
    def ends_soon(self):
        """What is inside takes as long as a job may after a rank has failed."""
        began = time.monotonic()
        yield
        self.assertLess(time.monotonic() - began, scaled(END_LIMIT_S))

    # ---- Tests of jobs of two ranks, wherever those are

    def second_interrupt_kills(self, start):
        """start() gives a job whose ranks ignore SIGINT. Without the second one they have GRACE_S to end."""
        lasted = []
        # A busy machine may delay one or another.
        while len(lasted) < 5 and min(lasted, default=GRACE_S) >= 0.8 * GRACE_S:
            process = start()
            process.send_signal(signal.SIGINT)
            self.assertIn("SIGINT", process.stderr.readline())
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=LIMIT_S)
            lasted.append(time.monotonic() - began)
            self.assertEqual(process.returncode, 130)
        self.assertLess(min(lasted), 0.8 * GRACE_S)

    def check_large_output(self, size, *placement):
        status, out, _ = self.run_job(*placement, "--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo")
        self.assertEqual((status, out.count("x")), (0, 2 * size))

    def check_signal_with_slow_reader(self, *placement):
        process = self.start(*placement, "yes")
        process.stdout.read(10)  # and no more: every pipe fills up
        process.send_signal(signal.SIGTERM)
        # Ends its ranks, and then needs a reader for what they have written.
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def check_reader_that_leaves(self, *placement):
        process = self.start(*placement, "yes")
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(timeout=LIMIT_S), 128 + signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), "")
