#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on a simulated machine: their results, their messages and bytes by formula, and that runs repeat.

simulation_test.py DIOMP_SIM

docs/simulation.md has the formulas.
"""
import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else ""
HEADER = 40  # of a fragment: group, call, step, size, position
STATE = 56  # of a call, in each message of the agreement
LONG_HEADER = 32  # of a long message: group, call, step, address
READY = 32  # a receiver's RTR
PER_MESSAGE = 4096 - HEADER
EAGER = 16 << 10
SPLIT = 256 << 10


def simulate(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: status {done.returncode}\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def one(collective, nbytes, nodes, *more):
    rows = simulate("--collectives", collective, "--sizes", nbytes, "--nodes", nodes, "--per-node", 1, "--verify", *more)
    if len(rows) != 1:
        raise AssertionError(f"{len(rows)} rows")
    return rows[0]


def rounds(nodes):
    return (nodes - 1).bit_length()


def with_state(nbytes):
    """Messages and bytes that carry a call's state and data."""
    if nbytes > 4096:
        return 1, LONG_HEADER + STATE + nbytes
    fragments = -(-(STATE + nbytes) // PER_MESSAGE)
    return fragments, STATE + nbytes + fragments * HEADER


def plain(nbytes):
    """Messages and bytes of data after the agreement: (sender's, receiver's)."""
    if nbytes > EAGER:
        parts = -(-nbytes // SPLIT)
        return (parts, nbytes + parts * LONG_HEADER), (parts, parts * READY)
    fragments = -(-nbytes // PER_MESSAGE)
    return (fragments, nbytes + fragments * HEADER), (0, 0)


class Counts(unittest.TestCase):
    def expect(self, row, messages, nbytes):
        self.assertEqual((row["max_messages"], row["max_bytes"]), (messages, nbytes), row)

    def test_a_barrier_sends_its_state_in_each_round(self):
        for nodes in (2, 3, 8, 13, 64):
            messages, nbytes = with_state(0)
            row = one("barrier", 8, nodes)
            self.expect(row, rounds(nodes) * messages, rounds(nodes) * nbytes)
            self.assertEqual(row["all_messages"], nodes * rounds(nodes))

    def test_the_root_of_a_small_bcast_sends_to_its_children(self):
        for nodes, nbytes in ((2, 8), (8, 1024), (13, 8), (16, 8192), (8, 65536)):
            messages, size = with_state(nbytes)
            row = one("bcast", nbytes, nodes)
            self.expect(row, rounds(nodes) * messages, rounds(nodes) * size)
            self.assertEqual(row["all_messages"], (nodes - 1) * messages)

    def test_a_small_allreduce_doubles(self):
        for nodes, nbytes in ((2, 8), (8, 1024), (16, 4096), (8, 65536)):
            messages, size = with_state(nbytes)
            self.expect(one("allreduce", nbytes, nodes), rounds(nodes) * messages, rounds(nodes) * size)

    def test_other_numbers_of_nodes_fold(self):
        # 13 nodes: five pairs fold into one each, eight double.
        messages, size = with_state(64)
        row = one("allreduce", 64, 13)
        self.expect(row, 4 * messages, 4 * size)
        self.assertEqual(row["all_messages"], (8 * 3 + 2 * 5) * messages)

    def test_a_large_allreduce_sends_each_node_its_part_and_the_result(self):
        for nodes, nbytes in ((4, 1 << 20), (8, 1 << 20)):
            agreement, state = with_state(0)
            part = nbytes // nodes
            # The receives are posted before the agreement, so long messages need no RTR.
            messages, size = 1, part + LONG_HEADER
            self.expect(one("allreduce", nbytes, nodes), rounds(nodes) * agreement + 2 * (nodes - 1) * messages,
                        rounds(nodes) * state + 2 * (nodes - 1) * size)

    def test_an_allgather_of_few_nodes_sends_to_each(self):
        agreement, state = with_state(0)
        for nodes, nbytes in ((2, 8), (4, 4096), (4, 65536)):
            (messages, size), (replies, reply_bytes) = plain(nbytes)
            self.expect(one("allgather", nbytes, nodes),
                        rounds(nodes) * agreement + (nodes - 1) * (messages + replies),
                        rounds(nodes) * state + (nodes - 1) * (size + reply_bytes))

    def test_an_allgather_of_many_nodes_goes_in_rounds(self):
        # The last node's ranges pass the end of the buffer; the first node's never do.
        agreement, state = with_state(0)
        for nodes in (16, 32):
            row = one("allgather", 8, nodes)
            steps = rounds(nodes)
            self.assertEqual(row["max_messages"], steps * agreement + 2 * steps - 1, row)
            self.assertEqual(row["max_bytes"], steps * state + (nodes - 1) * 8 + (2 * steps - 1) * HEADER, row)

    def test_an_alltoall_of_single_ranks_sends_to_each(self):
        agreement, state = with_state(0)
        for nodes, nbytes in ((4, 8), (8, 1024)):
            (messages, size), _ = plain(nbytes)
            self.expect(one("alltoall", nbytes, nodes), rounds(nodes) * agreement + (nodes - 1) * messages,
                        rounds(nodes) * state + (nodes - 1) * size)


class AllRanks(unittest.TestCase):
    """Every rank of every node takes part."""

    def run_all(self, collective, nbytes, nodes, per_node):
        return simulate("--collectives", collective, "--sizes", nbytes, "--nodes", nodes, "--per-node", per_node,
                        "--all-ranks", "--verify")[0]

    def test_results(self):
        for collective in ("barrier", "bcast", "allreduce", "allgather", "alltoall"):
            for nbytes in (8, 1000, 200000):
                for nodes, per_node in ((2, 3), (5, 4)):
                    with self.subTest(collective=collective, nbytes=nbytes, nodes=nodes, per_node=per_node):
                        self.assertGreater(self.run_all(collective, nbytes, nodes, per_node)["seconds"], 0)

    def test_allreduces_are_right_however_they_are_sliced(self):
        for nodes, per_node, least in ((2, 8, 5), (3, 6, 5), (8, 8, 5), (5, 3, 2)):
            for nbytes in (8, 512, 4096, 65536, 1 << 20):
                for memory in ((), ("--global",)):
                    with self.subTest(nodes=nodes, per_node=per_node, nbytes=nbytes, memory=memory):
                        rows = simulate("--collectives", "allreduce", "--sizes", nbytes, "--nodes", nodes, "--per-node",
                                        per_node, "--all-ranks", "--verify", "--repeat", 2, "--sliced-members", least,
                                        *memory)
                        self.assertGreater(rows[0]["seconds"], 0)

    def test_a_sliced_allreduce_sends_slices_and_no_agreement(self):
        row = self.run_all("allreduce", 4096, 8, 8)
        messages, nbytes = with_state(4096 // 8)
        self.assertEqual((row["max_messages"], row["max_bytes"]), (3 * messages, 3 * nbytes), row)
        self.assertEqual(row["all_messages"], 64 * 3 * messages, row)

    def test_global_memory_saves_a_copy(self):
        arguments = ("--collectives", "allreduce", "--sizes", "128KiB", "--nodes", 4, "--per-node", 8, "--all-ranks")
        private = simulate(*arguments)[0]["seconds"]
        self.assertLess(simulate(*arguments, "--global")[0]["seconds"] + 0.5 * (128 << 10) / 10e9, private)

    def test_a_small_alltoall_goes_by_nodes(self):
        # 16 nodes of 8 ranks: each rank sends to two of the 15 others, and the leaders agree in 4 rounds.
        row = self.run_all("alltoall", 8, 16, 8)
        agreement = 16 * 4
        self.assertEqual(row["all_messages"], agreement + 16 * 15, row)

    def test_a_large_alltoall_goes_in_pairs(self):
        row = self.run_all("alltoall", 4096, 2, 2)
        fragments = plain(4096)[0][0]
        self.assertEqual(row["all_messages"], 2 + 4 * 2 * fragments, row)


class Time(unittest.TestCase):
    def test_runs_repeat_exactly(self):
        arguments = ("--collectives", "barrier,bcast,allreduce,allgather", "--sizes", "8,64KiB,1MiB", "--nodes", 8,
                     "--per-node", 4, "--all-ranks")
        self.assertEqual(simulate(*arguments), simulate(*arguments))

    def test_a_message_takes_overheads_latencies_and_its_bytes(self):
        # Two nodes of one leaf switch, or of two: a bcast without waiting is one message.
        row = simulate("--collectives", "bcast", "--sizes", "64KiB", "--nodes", 2, "--per-node", 1, "--latency", "1e-6",
                       "--overhead", "5e-7", "--bandwidth", "1e9")[0]
        nbytes = with_state(65536)[1]
        for links in (2, 4):
            if abs(row["seconds"] - (links * 1e-6 + 2 * 5e-7 + nbytes / 1e9)) < 1e-8:
                return
        self.fail(row)

    def test_more_nodes_take_longer(self):
        for library in ("diomp", "ompi", "mpich"):
            times = [simulate("--library", library, "--collectives", "barrier", "--nodes", nodes, "--per-node", 4)[0]
                     ["seconds"] for nodes in (2, 8, 32)]
            self.assertEqual(times, sorted(times), library)
            self.assertLess(times[0], times[2], library)


class Misuse(unittest.TestCase):
    def expect_refused(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0, arguments)
        self.assertTrue(done.stderr.strip() or done.stdout.strip(), arguments)

    def test_wrong_arguments_are_refused(self):
        self.expect_refused("--nodes", 0)
        self.expect_refused("--library", "other")
        self.expect_refused("--collectives", "scan")
        self.expect_refused("--sizes", 7)
        self.expect_refused("--library", "ompi", "--sizes", "8,64")
        self.expect_refused("--collectives", "alltoall", "--per-node", 4)


if __name__ == "__main__":
    unittest.main()
