# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives with all dtypes and operators, blocking and with events, compared with NumPy's results."""
import numpy as np

import diomp
from support import DTYPES, ME, SIZE, TestCase, main


def values(rank, dtype, count=5):
    """What a rank contributes: small numbers, exact in all dtypes."""
    return ((np.arange(count) + rank) % 3).astype(dtype)


def everybodys(dtype, count=5):
    return np.stack([values(rank, dtype, count) for rank in range(SIZE)])


def call(name, *args, **kwargs):
    """Runs both forms of a collective, the second one with an event."""
    getattr(diomp, name)(*args, **kwargs)
    yield name
    getattr(diomp, name + "_nb")(*args, **kwargs).wait()
    yield name + "_nb"


class Collectives(TestCase):
    def test_moves_of_all_dtypes(self):
        for dtype in (*DTYPES, "S3", [("x", "i4"), ("y", "f8")]):
            plain = "i4" if isinstance(dtype, list) or dtype == "S3" else dtype
            mine = np.zeros(5, dtype)
            mine["x" if isinstance(dtype, list) else ...] = values(ME, plain)
            whole = np.zeros((SIZE, 5), dtype)
            for _ in call("allgather", whole, mine):
                self.assertEqual(whole[ME].tobytes(), mine.tobytes())
            swapped = np.zeros_like(whole)
            for _ in call("alltoall", swapped, whole):
                self.assertEqual(swapped.tobytes(), np.repeat(mine[None], SIZE, axis=0).tobytes())
            gathered = np.zeros_like(whole) if ME == SIZE - 1 else None
            for _ in call("gather", gathered, mine, root=SIZE - 1):
                if gathered is not None:
                    self.assertEqual(gathered.tobytes(), whole.tobytes())
            got = np.zeros_like(mine)
            for _ in call("scatter", got, gathered, SIZE - 1):
                self.assertEqual(got.tobytes(), mine.tobytes())
            for _ in call("bcast", got, SIZE - 1):
                self.assertEqual(got.tobytes(), whole[SIZE - 1].tobytes())

    def test_reductions_of_all_dtypes(self):
        for dtype in DTYPES:
            ops = {"LOR": np.logical_or, "LAND": np.logical_and} if dtype == "bool" else {"SUM": np.add, "PROD": np.multiply}
            if dtype not in ("bool", "complex64", "complex128"):
                ops.update(MIN=np.minimum, MAX=np.maximum)
            if np.dtype(dtype).kind in "iu":
                ops.update(BAND=np.bitwise_and, BOR=np.bitwise_or, BXOR=np.bitwise_xor)
            everything = everybodys(dtype)
            for name, ufunc in ops.items():
                self.check_reductions(getattr(diomp, name), ufunc, everything)

    def check_reductions(self, op, ufunc, everything):
        dtype = everything.dtype
        wanted = ufunc.reduce(everything, axis=0, dtype=dtype)
        got = np.zeros_like(everything[0])
        for form in call("allreduce", got, everything[ME], op):
            np.testing.assert_array_equal(got, wanted, f"{form} {op!r} {dtype}")
        got = np.zeros_like(got) if ME == 0 else None
        for form in call("reduce", got, everything[ME], op):
            if ME == 0:
                np.testing.assert_array_equal(got, wanted, f"{form} {op!r} {dtype}")
        got = np.zeros_like(everything[0])
        for form in call("scan", got, everything[ME], op):
            np.testing.assert_array_equal(got, ufunc.reduce(everything[:ME + 1], axis=0, dtype=dtype), form)
        for form in call("exscan", got, everything[ME], op):
            if ME > 0:
                np.testing.assert_array_equal(got, ufunc.reduce(everything[:ME], axis=0, dtype=dtype), form)
        block = np.zeros_like(everything[0])
        for form in call("reduce_scatter", block, np.stack([everything[ME]] * SIZE), op):
            np.testing.assert_array_equal(block, wanted, form)

    def test_average_and_in_place(self):
        data = np.full(1000, float(ME))
        diomp.allreduce(data, data, diomp.AVG)
        np.testing.assert_allclose(data, (SIZE - 1) / 2)
        whole = np.zeros((SIZE, 2))
        whole[ME] = ME
        diomp.allgather(whole, whole[ME])
        np.testing.assert_array_equal(whole, np.repeat(np.arange(SIZE), 2).reshape(SIZE, 2))

    def test_symmetric_and_fortran_order(self):
        target = diomp.zeros((3, 4), order="F")
        diomp.allreduce(target, np.asfortranarray(np.arange(12.0).reshape(3, 4)))
        np.testing.assert_array_equal(target, SIZE * np.arange(12.0).reshape(3, 4))
        diomp.barrier()
        diomp.free(target)

    def test_bfloat16(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes, which has the dtype bfloat16")
        got = np.zeros(3, ml_dtypes.bfloat16)
        diomp.allreduce(got, np.full(3, 0.5, ml_dtypes.bfloat16))
        self.assertEqual(float(got[0]), SIZE / 2)

    def test_variable_sizes(self):
        counts = [r + 1 for r in range(SIZE)]
        mine = np.full(ME + 1, ME, "i4")
        wanted = np.repeat(np.arange(SIZE), counts)
        whole = np.zeros(sum(counts), "i4")
        for form in call("allgatherv", whole, counts, mine):
            np.testing.assert_array_equal(whole, wanted, form)
        root = whole if ME == 0 else None
        for form in call("gatherv", root, counts, mine):
            np.testing.assert_array_equal(whole, wanted, form)
        got = np.zeros(ME + 1, "i4")
        for form in call("scatterv", got, root, counts):
            np.testing.assert_array_equal(got, mine, form)
        spread = np.full(2 * sum(counts), -1, "i4")
        offsets = [2 * sum(counts[:r]) for r in range(SIZE)]
        for form in call("allgatherv", spread, counts, mine, offsets=offsets):
            self.assertEqual([spread[o] for o in offsets], list(range(SIZE)))
            self.assertEqual((spread == -1).sum(), sum(counts))
        received = np.zeros(SIZE * (ME + 1), "i4")
        for form in call("alltoallv", received, [ME + 1] * SIZE, np.full(sum(counts), ME, "i4"), counts):
            np.testing.assert_array_equal(received, np.repeat(np.arange(SIZE), ME + 1), form)

    def test_orders_of_memory(self):
        c = np.arange(6.0).reshape(2, 3)
        f = np.asfortranarray(c)
        got = np.empty((2, 3), order="F")
        diomp.allreduce(got, f)
        np.testing.assert_array_equal(got, SIZE * c)
        for dst, src in ((np.empty((2, 3)), f), (got, c), (np.empty(6), f)):
            with self.fails(diomp.Status.ERR_ARG, "another order of memory"):
                diomp.allreduce(dst, src)
            with self.fails(diomp.Status.ERR_ARG, "another order of memory"):
                diomp.scan_nb(dst, src)
        lists = np.empty((SIZE, 2, 3))
        diomp.allgather(lists, c)
        np.testing.assert_array_equal(lists, np.array([c] * SIZE))
        for dst, src in ((np.empty((SIZE, 2, 3), order="F"), c), (lists, f)):
            if dst.flags.c_contiguous and src.flags.c_contiguous:
                continue  # one member
            with self.fails(diomp.Status.ERR_ARG, "Fortran's order"):
                diomp.allgather(dst, src)
            with self.fails(diomp.Status.ERR_ARG, "Fortran's order"):
                diomp.allgatherv(dst, [6] * SIZE, src)
        if SIZE > 1:
            with self.fails(diomp.Status.ERR_ARG, "Fortran's order"):
                diomp.alltoall(np.empty((SIZE, 2, 3)), np.empty((SIZE, 2, 3), order="F"))


if __name__ == "__main__":
    main()
