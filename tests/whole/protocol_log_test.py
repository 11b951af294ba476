#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DIOMP_LOG=coll:debug: the messages and the steps of collective calls."""
import re
import unittest

import jobs


class protocol_log_test(jobs.jobs):
    def lines_of(self, rank, log):
        """The log of one rank, without its prefix."""
        return re.findall(rf"^diomp: \[{rank}@[^]]*\] debug: (.*)$", log, re.M)

    def test_calls_on_one_node_name_their_algorithm_and_rounds(self):
        _, log = self.succeeds(2, "two_reductions", DIOMP_LOG="coll:debug")
        for rank in range(2):
            text = "\n".join(self.lines_of(rank, log))
            self.assertRegex(
                text, r"allreduce\(count=1, type=OMPX_INT64, op=OMPX_SUM\) on one node, "
                rf"block of 8 bytes: member {rank} of 2, from round \d+ on\n"
                r" +algorithm inline_data\n +done after 1 rounds")
            self.assertRegex(
                text, rf"block of 100000 bytes: member {rank} of 2, from round \d+ on\n"
                r" +algorithm flat, or zero copy if all buffers allow it\n"
                r" +flat of 12500 elements in chunks of \d+, \d+ bytes of stage buffer\n"
                r" +done after \d+ rounds")

    def test_calls_between_nodes_name_their_messages(self):
        _, log = self.succeeds(2, "two_reductions", DIOMP_LOG="coll:debug", DIOMP_NODE_SIZE="1")
        for rank in range(2):
            lines = self.lines_of(rank, log)
            begun = [re.match(r"call (\d+): ompx_allreduce\(count=(\d+).* by 2 members on 2 nodes; this is "
                              rf"member {rank}, the call leader of its node", line) for line in lines]
            numbers = {found.group(2): found.group(1) for found in begun if found}
            self.assertEqual(set(numbers), {"1", "12500"}, lines)
            for count, nbytes in (("1", 8), ("12500", 100000)):
                of_call = [line for line in lines if line.startswith(f"call {numbers[count]}: ")]
                sent = sum(int(n) for line in of_call for n in re.findall(
                    rf"sends (?:its state and )?(\d+) bytes to rank {1 - rank} in step \d+: \w+", line))
                received = sum(int(n) for line in of_call for n in re.findall(
                    rf"has received (?:the state and )?(\d+) bytes of rank {1 - rank} in step \d+", line))
                self.assertEqual((sent, received), (nbytes, nbytes), of_call)
                self.assertEqual(of_call[-1], f"call {numbers[count]}: done")

    def test_other_components_and_levels_do_not_write_it(self):
        for levels in ("info", "coll:info", "tcp:debug"):
            with self.subTest(levels):
                _, log = self.succeeds(2, "two_reductions", DIOMP_LOG=levels, DIOMP_NODE_SIZE="1")
                self.assertNotRegex(log, r"debug: (call \d+:|.*from round)")


if __name__ == "__main__":
    unittest.main()
