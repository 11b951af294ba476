#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where all ranks are, before a job that has waited in vain ends."""
import os
import re
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import jobs
from time_limits import scaled

RANKS = 3
# Showing stacks, and then ending (a second each at most).
END_LIMIT_S = 2.5
HOST = os.uname().nodename


class stacks_test(jobs.jobs):
    def blocks(self, err):
        """{rank: its block}; each rank has one, with host and pid."""
        found = {}
        rank = None
        for line in err.splitlines(keepends=True):
            head = re.fullmatch(r"diomp: stacks of rank (\d+) on (\S+) \(pid (\d+)\):\n", line)
            if head:
                rank = int(head[1])
                self.assertNotIn(rank, found, err)
                self.assertEqual(head[2].split("+")[0], HOST)
                found[rank] = ""
            elif rank is not None and line.startswith("  "):
                found[rank] += line
            else:
                rank = None
        return found

    def shows(self, block, *functions):
        """Functions of the program in one stack, innermost first."""
        frame = r"    #\d+ +{}\+0x[0-9a-f]+ \(\S+/actor\+0x[0-9a-f]+\)\n"
        self.assertRegex(block, "".join(frame.format(name) for name in functions))

    def ended_after(self, seconds, waited):
        self.assertLess(seconds, scaled(waited + END_LIMIT_S))

    # ---- A rank gives up

    def test_timeout_shows_all_ranks(self):
        status, _, err, seconds = self.act(RANKS, "busy_rank", DIOMP_TIMEOUT="2")
        self.assertEqual(status, 1, err)
        self.ended_after(seconds, 2)
        blocks = self.blocks(err)
        self.assertEqual(sorted(blocks), [0, 1, 2], err)
        self.shows(blocks[1], "loop_for_ever", "busy_rank", "main")
        for rank in (0, 2):
            self.shows(blocks[rank], "wait_at_the_barrier", "busy_rank", "main")
            self.assertRegex(blocks[rank], r"#\d+ +ompx_barrier_group\+0x")
        self.assertRegex(err, r"error: rank [02] \(.*timed out after 2 s waiting for rank 1 in ompx_barrier")

    def test_offsets_are_those_of_addr2line(self):
        _, _, err, _ = self.act(2, "busy_rank", DIOMP_TIMEOUT="1")
        place = re.search(r" loop_for_ever\+0x\S+ \((\S+)\+(0x[0-9a-f]+)\)", err)
        self.assertIsNotNone(place, err)
        try:
            said = subprocess.run(["addr2line", "-f", "-e", place[1], place[2]], text=True,
                                  capture_output=True, check=True).stdout
        except FileNotFoundError:
            self.skipTest("no addr2line")
        self.assertEqual(said.splitlines()[0], "loop_for_ever")

    def test_off_shows_none(self):
        status, _, err, seconds = self.act(RANKS, "busy_rank", DIOMP_TIMEOUT="1", DIOMP_STACKS="off")
        self.assertEqual(status, 1)
        self.ended_after(seconds, 1)
        self.assertNotIn("stacks", err)

    def test_stopped_rank_does_not_answer(self):
        status, _, err, seconds = self.act(RANKS, "stopped_rank", DIOMP_TIMEOUT="1")
        self.assertEqual(status, 1)
        self.ended_after(seconds, 1)
        blocks = self.blocks(err)
        self.assertEqual(sorted(blocks), [0, 2], err)
        self.shows(blocks[2], "wait_at_the_barrier", "stopped_rank", "main")
        self.assertRegex(err, r"diomp-run: rank 1 on \S+ \(pid \d+, .*\) shows no stacks: it is stopped\n")

    def test_death_of_a_rank_shows_none(self):
        status, _, err, _ = self.act(RANKS, "die", DIOMP_TIMEOUT="5")
        self.assertEqual(status, 128 + signal.SIGSEGV)
        self.assertNotIn("stacks", err)

    def test_own_stack_without_diomp_run(self):
        # No launcher that could ask others.
        done = subprocess.run([jobs.ACTOR, "alone"], env={**self.environment, "DIOMP_TIMEOUT": "0.5"},
                              text=True, capture_output=True, timeout=jobs.LIMIT_S, check=False)
        self.assertEqual(done.returncode, 1)
        blocks = self.blocks(done.stderr)
        self.assertEqual(list(blocks), [0], done.stderr)
        self.shows(blocks[0], "wait_for_nobody", "alone", "main")

    # ---- diomp-run ends the job

    def end_by_limit(self, behaviour, limit, **settings):
        environment = {**self.environment, **settings}
        began = time.monotonic()
        done = subprocess.run([jobs.RUN, "-n", str(RANKS), "--bind-to", "none", "--timeout", str(limit), "--",
                               jobs.ACTOR, behaviour], env=environment, text=True, capture_output=True,
                              timeout=jobs.LIMIT_S, check=False)
        self.assertEqual(done.returncode, 124, done.stderr)
        self.ended_after(time.monotonic() - began, limit)
        return done.stderr

    def test_time_limit_of_the_job(self):
        err = self.end_by_limit("busy_rank", 2)
        blocks = self.blocks(err)
        self.assertEqual(sorted(blocks), [0, 1, 2], err)
        self.shows(blocks[1], "loop_for_ever", "busy_rank", "main")
        for rank in (0, 2):
            self.shows(blocks[rank], "wait_at_the_barrier", "busy_rank", "main")
            self.assertRegex(blocks[rank], r"  thread \d+ \(actor\), in ompx_barrier\(group=world\), "
                                           r"waiting for rank 1 in ompx_barrier\(\)")

    def test_several_hosts(self):
        # A remote shell that stays here.
        with tempfile.TemporaryDirectory() as place:
            shell = os.path.join(place, "rsh")
            with open(shell, "w") as file:
                file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
            os.chmod(shell, stat.S_IRWXU)
            began = time.monotonic()
            done = subprocess.run([jobs.RUN, "--hosts", "a:2,b", "--rsh", shell, "--", jobs.ACTOR, "busy_rank"],
                                  env={**self.environment, "DIOMP_TIMEOUT": "3"}, text=True, capture_output=True,
                                  timeout=jobs.LIMIT_S, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.ended_after(time.monotonic() - began, 3 + 1)
        found = re.findall(r"^diomp: stacks of rank (\d) on (\S+) ", done.stderr, re.MULTILINE)
        self.assertEqual(sorted(found), [("0", "a"), ("1", "a"), ("2", "b")], done.stderr)
        self.shows(done.stderr, "loop_for_ever", "busy_rank", "main")
        self.shows(done.stderr, "wait_at_the_barrier", "busy_rank", "main")

    def test_time_limit_with_stacks_off(self):
        self.assertNotIn("stacks", self.end_by_limit("busy_rank", 1, DIOMP_STACKS="off"))

    def test_threads_and_signals_of_the_program(self):
        err = self.end_by_limit("several_threads", 2)
        blocks = self.blocks(err)
        self.assertEqual(sorted(blocks), [0, 1, 2], err)
        self.shows(blocks[0], "loop_for_ever", "several_threads", "main")
        for rank in (0, 2):
            # Threads that are at the same place are shown once.
            self.assertRegex(blocks[rank], r"  3 threads \d+, \d+, \d+ \(actor\)\n")
            self.shows(blocks[rank], "sleep_for_ever", "sleep_in_thread")
        # Rank 1 uses every signal itself: none is taken from it.
        self.assertNotIn("#0", blocks[1])
        self.assertIn("the program uses all real-time signals", blocks[1])

    def test_quit_shows_them(self):
        process = self.start(2, "endless")
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGQUIT)
        _, err = process.communicate(timeout=jobs.LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGQUIT)
        blocks = self.blocks(err)
        self.assertEqual(sorted(blocks), [0, 1], err)
        for block in blocks.values():
            self.shows(block, "endless", "main")  # it may still be printing its number

    # ---- A user asks, and the job goes on

    def start_waiting(self, behaviour, *options, **settings):
        """A job of RANKS ranks that ends well once the file self.go is there; its errors are in self.errors."""
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.go = os.path.join(place.name, "go")
        self.errors = os.path.join(place.name, "errors")
        shell = os.path.join(place.name, "rsh")
        with open(shell, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(shell, stat.S_IRWXU)
        with open(self.errors, "w") as errors:
            process = subprocess.Popen(
                [jobs.RUN, *(options or ("-n", str(RANKS), "--bind-to", "none")), "--", jobs.ACTOR, behaviour],
                env={**self.environment, "TEST_GO": self.go, "DIOMP_RSH": shell, **settings}, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors)
        self.started.append(process)
        for _ in range(RANKS):
            self.assertIn("waits", process.stdout.readline())
        return process

    def errors_with(self, pattern, count):
        """The job's errors once they have `count` matches of the pattern."""
        end = time.monotonic() + jobs.LIMIT_S
        while time.monotonic() < end:
            with open(self.errors) as file:
                text = file.read()
            if len(re.findall(pattern, text, re.MULTILINE)) >= count:
                return text
            time.sleep(0.01)
        self.fail(text)

    def ends_well(self, process):
        with open(self.go, "w"):
            pass
        out, _ = process.communicate(timeout=jobs.LIMIT_S)
        with open(self.errors) as file:
            text = file.read()
        self.assertEqual(process.returncode, 0, text)
        return out, text

    def shown_twice_then_well(self, *options, **settings):
        process = self.start_waiting("talk_late", *options, **settings)
        for round_, number in enumerate((signal.SIGUSR1, signal.SIGUSR2), 1):
            process.send_signal(number)
            text = self.errors_with(r"talk_late\+0x", RANKS * round_)
            shown = re.findall(r"^diomp: stacks of rank (\d) ", text, re.MULTILINE)
            self.assertEqual(sorted(shown), sorted(list("012") * round_), text)
        _, text = self.ends_well(process)
        self.assertEqual(len(re.findall("stacks of rank", text)), 2 * RANKS, text)
        self.assertNotIn("diomp-run", text)

    def test_user_signals_show_them_and_the_job_goes_on(self):
        self.shown_twice_then_well()

    def test_user_signals_on_several_hosts(self):
        self.shown_twice_then_well("--hosts", "a:2,b")

    def test_user_signal_that_the_program_handles(self):
        process = self.start_waiting("handle_signal_and_talk")
        process.send_signal(signal.SIGUSR1)
        self.errors_with(r"talk_late\+0x", RANKS - 1)
        process.send_signal(signal.SIGUSR2)
        text = self.errors_with(r"talk_late\+0x", 2 * RANKS - 1)
        shown = re.findall(r"^diomp: stacks of rank (\d) ", text, re.MULTILINE)
        self.assertEqual(sorted(shown), list("01122"), text)
        out, _ = self.ends_well(process)
        for rank, count in ((0, 1), (1, 0), (2, 0)):
            self.assertIn(f"rank {rank} got {count}\n", out)

    def test_user_signal_with_stacks_off_ends_ranks(self):
        process = self.start_waiting("talk_late", DIOMP_STACKS="off")
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=jobs.LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGUSR1)

    def test_last_stacks_after_others(self):
        process = self.start_waiting("talk_late")
        process.send_signal(signal.SIGUSR1)
        self.errors_with(r"talk_late\+0x", RANKS)
        process.send_signal(signal.SIGQUIT)
        process.communicate(timeout=jobs.LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGQUIT)
        text = self.errors_with(r"talk_late\+0x", 2 * RANKS)
        self.assertNotIn("shows no stacks", text)


if __name__ == "__main__":
    unittest.main()
