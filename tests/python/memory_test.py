# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in global memory: shapes, contents, views, frees."""
import gc

import numpy as np

import diomp
from support import DTYPES, ME, RIGHT, SIZE, TestCase, main


class Memory(TestCase):
    def test_all_dtypes_and_shapes(self):
        for dtype in (*DTYPES, "S5", "U3", "datetime64[s]", [("x", "i4"), ("y", "f8", (2,))]):
            for shape in ((), 0, 3, (2, 3), (2, 0, 3), np.int64(4)):
                made = diomp.zeros(shape, dtype)
                like = np.zeros(shape, dtype)
                self.assertEqual((made.shape, made.dtype), (like.shape, like.dtype))
                self.assertTrue(made.size == 0 or made.strides == like.strides)
                self.assertEqual(made.tobytes(), like.tobytes())
                self.assertFalse(made.flags.owndata)
                diomp.free(made)

    def test_values(self):
        self.assertTrue((diomp.full((2, 3), 7.5) == 7.5).all())
        self.assertEqual(diomp.full(2, 3).dtype, np.dtype(int))
        values = diomp.array([[1, 2], [3, 4 + ME]], dtype="i2")
        self.assertEqual(values.tolist(), [[1, 2], [3, 4 + ME]])
        self.assertTrue(diomp.empty((3, 4), order="F").flags.f_contiguous)
        with self.assertRaises(ValueError):
            diomp.empty(3, order="X")

    def test_no_copy(self):
        made = diomp.zeros(10, "i4")
        info = diomp.address_info(made)
        self.assertEqual((info.rank, info.kind, info.nbytes >= 40), (ME, diomp.MemKind.SYMMETRIC, True))
        self.assertEqual(diomp.address_info(np.zeros(3)).rank, -1)
        other = diomp.remote_view(made, RIGHT)
        if other is not None:
            other[3] = 5 + ME
        diomp.barrier()
        if other is not None and SIZE <= diomp.num_local_ranks():
            self.assertEqual(made[3], 5 + (ME - 1) % SIZE)
        diomp.free(made)

    def test_symmetric_offsets_are_equal(self):
        made = diomp.empty(100)
        offset = np.array([diomp.address_info(made).offset])
        offsets = np.empty(SIZE, offset.dtype)
        diomp.allgather(offsets, offset)
        self.assertTrue((offsets == offset).all())
        diomp.free(made)

    def test_asymmetric_and_local(self):
        block = diomp.full(10 * (ME + 1), ME, "i8", kind=diomp.MemKind.ASYMMETRIC)
        got = np.empty(10, "i8")
        diomp.get(got, RIGHT, block[:10])
        self.assertTrue((got == RIGHT).all())
        diomp.barrier()
        diomp.free(block)
        own = diomp.zeros(5, kind=diomp.MemKind.LOCAL)
        self.assertEqual(diomp.address_info(own).kind, diomp.MemKind.LOCAL)
        diomp.free(own)

    def test_free_is_reused(self):
        before = diomp.segment_info().symmetric_used
        for _ in range(50):
            diomp.free(diomp.empty(1 << 17))
        self.assertEqual(diomp.segment_info().symmetric_used, before)

    def test_free_of_a_view_frees_its_array(self):
        made = diomp.zeros(12).reshape(3, 4)
        diomp.free(made[1:])
        with self.fails(diomp.Status.ERR_ADDRESS, "has been freed"):
            diomp.put(ME, made, made)

    def test_collector_frees_nothing_by_itself(self):
        diomp.collect()
        before = diomp.segment_info().symmetric_used
        made = diomp.zeros(1000)
        kept = diomp.zeros(1000)
        used = diomp.segment_info().symmetric_used
        view = made[10:20]
        del made
        if ME == 0 and SIZE > 1:
            del view  # on one rank only
        gc.collect()
        self.assertEqual(diomp.segment_info().symmetric_used, used)
        self.assertEqual(diomp.collect(), 0 if SIZE > 1 else 0)
        if ME != 0 or SIZE == 1:
            view[:] = 3  # still this rank's memory
            del view
        gc.collect()
        self.assertEqual(diomp.collect(), 1)
        del kept
        self.assertEqual(diomp.collect(), 1)
        self.assertEqual(diomp.segment_info().symmetric_used, before)

    def test_registered_memory(self):
        mine = np.full(1000, ME, "f8")
        diomp.register(mine)
        where = np.array([mine.__array_interface__["data"][0]], "u8")
        addresses = np.empty(SIZE, "u8")
        diomp.allgather(addresses, where)
        self.assertEqual(diomp.address_info(mine).kind, diomp.MemKind.REGISTERED)
        diomp.barrier()
        diomp.unregister(mine)


if __name__ == "__main__":
    main()
