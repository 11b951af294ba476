# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomics of all types and operators, and waits for values."""
import numpy as np

import diomp
from support import ME, RIGHT, SIZE, TestCase, main

TYPES = ("int32", "uint32", "int64", "uint64", "float32", "float64")


class Atomic(TestCase):
    def test_sums_of_all_ranks(self):
        for dtype in TYPES:
            counter = diomp.zeros(3, dtype)
            seen = {int(diomp.atomic_fetch_add(0, counter[1:2], 1)) for _ in range(50)}
            self.assertEqual(len(seen), 50)
            diomp.atomic_add(0, counter[2:], 2)
            diomp.barrier()
            if ME == 0:
                self.assertEqual(counter.tolist(), [0, 50 * SIZE, 2 * SIZE])
            diomp.barrier()
            diomp.free(counter)

    def test_operators(self):
        for dtype in TYPES:
            value = diomp.zeros(1, dtype)
            at = (ME, value)
            diomp.atomic_set(*at, 12)
            self.assertEqual(diomp.atomic_fetch(*at), 12)
            self.assertEqual(diomp.atomic_swap(*at, 5), 12)
            self.assertEqual(diomp.atomic_fetch_min(*at, 3), 5)
            self.assertEqual(diomp.atomic_fetch_max(*at, 9), 3)
            diomp.atomic_min(*at, 8)
            diomp.atomic_max(*at, 1)
            self.assertEqual(diomp.atomic_compare_swap(*at, 7, 1), 8)
            self.assertEqual(diomp.atomic_compare_swap(*at, 8, 6), 8)
            if np.dtype(dtype).kind != "f":
                diomp.atomic_or(*at, 1)
                self.assertEqual(diomp.atomic_fetch_and(*at, 3), 7)
                self.assertEqual(diomp.atomic_fetch_or(*at, 4), 3)
                self.assertEqual(diomp.atomic_fetch_xor(*at, 1), 7)
                diomp.atomic_and(*at, 6)
                diomp.atomic_xor(*at, 8)
                self.assertEqual(diomp.atomic_fetch(*at), 14)
            else:
                self.assertEqual(diomp.atomic_fetch(*at), 6)
            diomp.barrier()
            diomp.free(value)

    def test_large_values_are_exact(self):
        value = diomp.zeros(1, "u8")
        diomp.atomic_set(RIGHT, value, 2**64 - 2)
        diomp.barrier()
        self.assertEqual(diomp.atomic_fetch_add(ME, value, 1), 2**64 - 2)
        with self.assertRaises((OverflowError, TypeError, ValueError)):
            diomp.atomic_add(ME, value, "many")
        diomp.barrier()
        diomp.free(value)

    def test_wait_until(self):
        turn = diomp.zeros(1, "i4")
        diomp.wait_until(turn, diomp.CMP_EQ, 1) if ME > 0 else None
        if ME + 1 < SIZE:
            diomp.atomic_set(RIGHT, turn, 1)
        diomp.fence()
        diomp.barrier()
        diomp.free(turn)


if __name__ == "__main__":
    main()
