# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that are functions of the program."""
import numpy as np

import diomp
from support import ME, SIZE, TestCase, main


class Operators(TestCase):
    def test_ufunc_and_function(self):
        data = np.arange(1000.0) + ME
        got = np.empty_like(data)
        diomp.allreduce(got, data, diomp.UserOp(np.maximum, commutative=True))
        np.testing.assert_array_equal(got, np.arange(1000.0) + SIZE - 1)
        weighted = diomp.UserOp(lambda left, right: left * 2 + right * 0 + left * 0 + right)
        one = np.array([1])
        first = np.empty(1, int)
        diomp.scan(first, one, weighted)
        self.assertEqual(first[0], 2 ** (ME + 1) - 1)

    def test_rank_order(self):
        op = diomp.UserOp(lambda left, right: left)  # the first member's
        got = np.empty(3, "i4")
        diomp.allreduce_nb(got, np.full(3, ME, "i4"), op).wait()
        self.assertEqual(got.tolist(), [0, 0, 0])

    def test_structures(self):
        pair = np.dtype([("value", "f8"), ("rank", "i4")])
        op = diomp.UserOp(lambda a, b: np.where(b["value"] > a["value"], b, a), pair)
        mine = np.array([(ME % 3, ME)], pair)
        got = np.empty(1, pair)
        diomp.allreduce(got, mine, op)
        best = max(range(SIZE), key=lambda r: (r % 3, -r))
        self.assertEqual((got["value"][0], got["rank"][0]), (best % 3, best))
        with self.fails(diomp.Status.ERR_ARG, "another dtype than its operator"):
            diomp.allreduce(np.empty(1), np.ones(1), op)

    def test_exceptions_come_back(self):
        def broken(left, right):
            raise ZeroDivisionError("in the operator")

        op = diomp.UserOp(broken)
        raised = 0
        try:
            diomp.reduce(np.empty(2), np.ones(2), op)
        except ZeroDivisionError:
            raised = 1
        total = np.empty(1, int)
        diomp.allreduce(total, np.array([raised]))
        self.assertGreaterEqual(total[0], 1 if SIZE > 1 else 0)


if __name__ == "__main__":
    main()
