#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bad use gets when nobody asked for return codes: the job ends soon, with a message that
names rank, function, arguments and remedy, and with diomp-run's."""
import os
import re
import signal
import time
import unittest

import jobs
from time_limits import scaled

RANKS = 3
# A job must be over this long after the misuse, on an idle machine.
END_LIMIT_S = 2.0
HOST = re.escape(os.uname().nodename)


class errors_test(jobs.jobs):
    def ends(self, behaviour, function, arguments, cause, remedy, who="1", **settings):
        """`who`, `arguments` and `cause` are regular expressions. Returns standard error."""
        status, _, err, seconds = self.act(RANKS, behaviour, **settings)
        waited = float(settings.get("DIOMP_TIMEOUT", 0))
        self.assertNotEqual(status, 0, err)
        self.assertLess(seconds, scaled(END_LIMIT_S + waited), err)
        messages = [line for line in err.splitlines() if " error: " in line]
        self.assertTrue(messages, err)
        for message in messages:
            self.assertRegex(
                message, rf"error: rank ({who}) \({HOST}\): {function}\({arguments}\): .*{cause}.* "
                         rf"\[remedy: .*{remedy}.*\]$")
        if who == "1":
            self.assertEqual(len(messages), 1, err)
        launcher = [line for line in err.splitlines() if line.startswith("diomp-run: ")]
        self.assertEqual(len(launcher), 1, err)
        self.assertRegex(launcher[0], rf"rank ({who}) on {HOST} \(pid \d+, .*actor\) "
                                      r"(aborted the job|exited) with status 1$")
        return err

    # ---- One rank's call

    def test_rank_beyond_the_world(self):
        self.ends("wrong_rank", "ompx_put", "rank=3, dst=0x.*, src=0x.*, nbytes=8",
                  "rank 3 is outside the world of 3 ranks", "0 to 2")

    def test_negative_rank(self):
        self.ends("negative_rank", "ompx_get", "dst=0x.*, rank=-1, src=0x.*, nbytes=24",
                  "rank -1 is outside the world", "0 to 2")

    def test_address_outside_the_space(self):
        self.ends("bad_address", "ompx_put", "rank=0, dst=0x.*, src=0x.*, nbytes=8",
                  "outside the global address space", "ompx_register")

    def test_null_pointer(self):
        self.ends("null_pointer", "ompx_get", "dst=0x0, rank=0, src=0x.*, nbytes=8",
                  "dst is a null pointer", "allocated")

    def test_negative_size(self):
        self.ends("negative_size", "ompx_put", "rank=0, .*, nbytes=18446744073709551608",
                  "as a signed number: -8", "arithmetic")

    def test_past_the_segment(self):
        self.ends("past_the_segment", "ompx_put", r"rank=0, .*, nbytes=\d+",
                  "run past the end of the segment", "size")

    def test_past_the_allocation(self):
        self.ends("past_the_allocation", "ompx_put", "rank=0, .*, nbytes=8",
                  "past the end of the allocation of 4096 bytes", "size",
                  DIOMP_CHECK="allocations")

    def test_double_free(self):
        self.ends("double_free", "ompx_free", "ptr=0x.*", "freed before", "once")

    def test_use_after_free(self):
        self.ends("use_after_free", "ompx_put", "rank=0, .*, nbytes=8", "the address is in no allocation", "freed")

    def test_free_inside_an_allocation(self):
        self.ends("free_inside", "ompx_free", "ptr=0x.*", "64 bytes inside an allocation",
                  "the address that the allocation returned")

    def test_unlock_not_held(self):
        self.ends("unlock_not_held", "ompx_unlock", "rank=0", "does not hold the lock of rank 0",
                  "lock it first")

    def test_unknown_type(self):
        self.ends("unknown_type", "ompx_atomic_fetch", "rank=0, .*type=unknown type 999, op=OMPX_SUM", "type 999", "OMPX_INT32")

    def test_running_out(self):
        self.ends("out_of_memory", "ompx_alloc", "nbytes=8388608, .*local",
                  "no room for 8388608 bytes .* the segment has 1 MiB, of which .* used and .* free",
                  "DIOMP_SEGMENT_SIZE", DIOMP_SEGMENT_SIZE="1M")

    def test_a_size_that_no_segment_has(self):
        self.ends("impossible_size", "ompx_alloc", "nbytes=4611686018427387904, .*local",
                  "no room for 4611686018427387904 bytes", "check the arithmetic")

    # ---- Calls that do not fit together: any rank may be the first to see it

    def disagree(self, behaviour, function, arguments, one, other):
        self.ends(behaviour, function, arguments, f"disagree about a collective call: rank 0 made "
                  f"{re.escape(one)}, rank 1 made {re.escape(other)}", "same order", who="[0-2]")

    def test_differing_symmetric_sizes(self):
        self.disagree("differing_sizes", "ompx_alloc", "nbytes=[12]000, .*symmetric",
                      "symmetric allocation(nbytes=1000, alignment=64)",
                      "symmetric allocation(nbytes=2000, alignment=64)")

    def test_differing_collectives(self):
        self.disagree("differing_calls", "ompx_(bcast|allreduce)", ".*", "ompx_bcast(root=0, nbytes=8)",
                      "ompx_allreduce(count=1, type=OMPX_INT64, op=OMPX_SUM)")

    def test_a_copy_of_a_group_and_a_split(self):
        self.disagree("differing_splits", "ompx_group_(split|dup)", "group=world.*", "ompx_group_split()",
                      "ompx_group_dup()")

    def test_differing_roots(self):
        # Both roots send and wait for nobody: they find out at their next call, whatever it is.
        made = r"rank [0-2] made ompx_bcast\(root=%d, nbytes=8\)"
        either = f"({made % 0}, {made % 1}|{made % 1}, {made % 0})"
        self.ends("differing_roots", "(ompx_bcast_from|ompx_barrier|exit)", ".*",
                  f"disagree about a collective call: {either}", "same order", who="[0-2]")

    def test_differing_counts(self):
        self.disagree("differing_counts", "ompx_bcast", ".*nbytes=(16|24).*",
                      "ompx_bcast(root=0, nbytes=16)", "ompx_bcast(root=0, nbytes=24)")

    def test_early_exit_of_a_rank(self):
        self.disagree("early_exit", "(ompx_barrier|exit)", ".*", "ompx_barrier()", "ompx_finalize()")

    # ---- Order of life

    def test_call_after_finalize(self):
        self.ends("after_finalize", "ompx_put", "rank=0, .*", "called after ompx_finalize",
                  "before ompx_finalize")

    def test_rank_missing_at_a_barrier(self):
        self.ends("missing_rank", "ompx_barrier", "group=world",
                  "timed out after 1 s waiting for rank 1 in ompx_barrier", "DIOMP_TIMEOUT",
                  who="[02]", DIOMP_TIMEOUT="1")

    def test_rank_that_is_killed(self):
        status, _, err, seconds = self.act(RANKS, "die")
        self.assertEqual(status, 128 + 11)
        self.assertLess(seconds, scaled(END_LIMIT_S))
        self.assertRegex(err, rf"^diomp-run: rank 1 on {HOST} \(pid \d+, .*actor\) was killed by signal 11 "
                              r"\(SIGSEGV.*\)\n$")

    def test_waiting_is_not_silent(self):
        process = self.start(RANKS, "missing_rank", settings={"DIOMP_WARN_AFTER": "0.1"})
        # Ranks 0 and 2 each say it, once; the job waits on until it is told to stop.
        # (On a slow machine others may have been slow before.)
        said = []
        while len(said) < 2:
            line = process.stderr.readline()
            self.assertIn("warning: ", line)
            if "waiting for rank 1 in ompx_barrier()" in line:
                said.append(re.search(r"\[(\d)@", line).group(1))
        self.assertEqual(sorted(said), ["0", "2"])
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=jobs.LIMIT_S)
        self.assertLess(time.monotonic() - began, scaled(END_LIMIT_S))
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertNotIn("warning", err)

    def test_rank_that_leaves_without_a_word(self):
        status, _, err, seconds = self.act(RANKS, "early_underscore_exit")
        self.assertNotEqual(status, 0)
        self.assertLess(seconds, scaled(END_LIMIT_S))
        self.assertRegex(err, rf"^diomp-run: rank 1 on {HOST} \(pid \d+, .*actor\) exited with status 0 "
                              r"without ompx_finalize\(\) while other ranks still run\n$")


if __name__ == "__main__":
    unittest.main()
