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

    def test_an_exception_is_given_up_with_its_event(self):
        fails = [True]

        def broken_once(left, right):
            if fails[0]:
                raise ZeroDivisionError("in the operator")
            return left + right

        op = diomp.UserOp(broken_once)
        dropped = diomp.allreduce_nb(np.empty(2), np.ones(2), op)
        del dropped
        diomp.barrier()
        other = diomp.zeros(1)
        for _ in range(100):  # each start releases dropped events that are complete
            diomp.put_nb(ME, other, np.ones(1)).wait()
            diomp.barrier()
        fails[0] = False
        got = np.empty(2)
        diomp.allreduce(got, np.ones(2), op)
        self.assertEqual(got.tolist(), [SIZE, SIZE])

    def test_what_is_no_operator(self):
        for wrong in ("sum", 2.5, np.add):
            with self.fails(diomp.Status.ERR_ARG, "is no operator", "op="):
                diomp.allreduce(np.empty(2), np.ones(2), wrong)
        with self.assertRaises(TypeError):
            diomp.UserOp(3)
        if SIZE > 1:
            raised = 0
            try:
                diomp.allreduce(np.empty(2), np.ones(2), diomp.UserOp(lambda left, right: None))
            except TypeError as error:
                self.assertIn("returned None", str(error))
                raised = 1
            total = np.empty(1, int)
            diomp.allreduce(total, np.array([raised]))
            self.assertGreaterEqual(total[0], 1)


if __name__ == "__main__":
    main()
