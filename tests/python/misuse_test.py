# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bad use gets: an exception with a status and a sentence that names argument and remedy."""
import pickle

import numpy as np

import diomp
from diomp import Status
from support import ME, RIGHT, SIZE, TestCase, main


class Misuse(TestCase):
    def setUp(self):
        super().setUp()
        self.target = diomp.zeros((4, 6))

    def tearDown(self):
        super().tearDown()
        diomp.free(self.target)

    def test_not_in_global_memory(self):
        private = np.zeros(6)
        if SIZE > 1:
            with self.fails(Status.ERR_ADDRESS, "outside the global address space", "remedy"):
                diomp.put(RIGHT, private, np.ones(6))
            with self.fails(Status.ERR_ADDRESS, "outside the global address space"):
                diomp.get(np.empty(6), RIGHT, private)
        with self.fails(Status.ERR_ADDRESS, "not allocated by this package", "diomp.zeros"):
            diomp.free(private)

    def test_not_contiguous(self):
        column = self.target[:, 0]
        for call in (lambda: diomp.allreduce(np.empty(4), column), lambda: diomp.bcast(column),
                     lambda: diomp.register(np.zeros((3, 3))[:, 1])):
            with self.fails(Status.ERR_ARG, "is not contiguous", "numpy.ascontiguousarray"):
                call()
        with self.fails(Status.ERR_ARG, "is not contiguous"):
            diomp.put_signal(RIGHT, column, np.ones(4), diomp.zeros(1, "u8"), 1)

    def test_objects(self):
        for call in (lambda: diomp.zeros(3, object), lambda: diomp.zeros(3, [("x", "i4"), ("y", "O")]),
                     lambda: diomp.put(RIGHT, self.target[0], np.array([None] * 6)),
                     lambda: diomp.bcast(np.array([1, "a"], object)),
                     lambda: diomp.allgather(np.empty(SIZE, object), np.empty(1, object))):
            with self.fails(Status.ERR_ARG, "references to Python objects", "pickle"):
                call()

    def test_shapes_and_types(self):
        with self.fails(Status.ERR_MISMATCH, "dst=float64(6,)", "src=float64(5,)", "different shapes"):
            diomp.put(RIGHT, self.target[0], np.ones(5))
        with self.fails(Status.ERR_MISMATCH, "different shapes"):
            diomp.put(RIGHT, self.target, np.ones((6, 4)))
        with self.fails(Status.ERR_ARG, "src=float32(6,)", "different dtypes", "astype"):
            diomp.put(RIGHT, self.target[0], np.ones(6, "f4"))
        with self.fails(Status.ERR_ARG, "different dtypes"):
            diomp.put(RIGHT, self.target[0], np.ones(6, ">f8"))
        with self.fails(Status.ERR_ARG, "different dtypes"):
            diomp.get(np.ones(6, "i8"), RIGHT, self.target[0])

    def test_values_that_do_not_fit(self):
        whole = diomp.zeros(4, "i4")
        for values in (1.9, [1, 2, 3.5, 4], np.int64(2**40 + 3)):
            with self.fails(Status.ERR_ARG, "src=", "has values that the other side's dtype does not hold"):
                diomp.put(ME, whole, values) if np.ndim(values) else diomp.put(ME, whole[:1], values)
        with self.fails(Status.ERR_ARG, "value=", "does not hold"):
            diomp.atomic_add(ME, whole[:1], 1.9)
        diomp.put(ME, whole, [1, 2.0, True, -4])
        diomp.fence()
        self.assertEqual(whole.tolist(), [1, 2, 1, -4])
        diomp.atomic_add(ME, whole[:1], np.int64(3))
        self.assertEqual(whole[0], 4)
        diomp.free(whole)

    def test_elements_and_other_objects(self):
        with self.fails(Status.ERR_ARG, "NumPy scalar", "a[i:i+1]"):
            diomp.put(RIGHT, self.target[0, 0], 1.0)
        with self.fails(Status.ERR_ARG, "src is not a NumPy array", "src=list"):
            diomp.allreduce(np.empty(2), [1, 2])
        with self.assertRaises(TypeError):
            diomp.put("left", self.target, self.target)
        with self.assertRaises(ValueError):
            diomp.put(RIGHT, self.target[0], "a word")

    def test_read_only_and_broadcasts(self):
        frozen = np.zeros(6)
        frozen.flags.writeable = False
        with self.fails(Status.ERR_ARG, "dst is read-only"):
            diomp.get(frozen, RIGHT, self.target[0])
        with self.fails(Status.ERR_ARG, "dst is read-only"):
            diomp.allreduce(frozen, np.ones(6))
        repeated = np.lib.stride_tricks.as_strided(self.target, (6,), (0,))
        with self.fails(Status.ERR_ARG, "have the same address"):
            diomp.put(RIGHT, repeated, np.ones(6))

    def test_freed(self):
        freed = diomp.zeros(6)
        view = freed[2:]
        diomp.free(freed)
        for call in (lambda: diomp.put(RIGHT, view, np.ones(4)), lambda: diomp.get(np.empty(4), RIGHT, view),
                     lambda: diomp.put(RIGHT, self.target[0], freed), lambda: diomp.free(freed),
                     lambda: diomp.bcast(view)):
            with self.fails(Status.ERR_ADDRESS, "has been freed"):
                call()
        with self.assertRaises(ValueError):
            freed[0] = 1

    def test_ranks_and_ranges(self):
        with self.fails(Status.ERR_RANK, f"rank {SIZE} is outside"):
            diomp.put(SIZE, self.target, np.ones((4, 6)))
        with self.fails(Status.ERR_RANK):
            diomp.get(np.ones((4, 6)), -1, self.target)
        with self.fails(Status.ERR_ARG):
            diomp.zeros((1 << 40, 1 << 40))
        with self.fails(Status.ERR_ARG):
            diomp.empty(-1)
        with self.fails(Status.ERR_NOMEM):
            diomp.empty(1 << 45)
        with self.fails(Status.ERR_ARG, "17 is not a kind of allocation"):
            diomp.zeros(3, kind=17)
        if SIZE > 1:
            with self.fails(Status.ERR_MISMATCH, "ranks disagree"):
                diomp.zeros(3 + ME)

    def test_sizes_of_collectives(self):
        for call in (lambda: diomp.allgather(np.empty(3 * SIZE + 1), np.ones(3)),
                     lambda: diomp.allreduce(np.empty(3), np.ones(4)),
                     lambda: diomp.reduce_scatter(np.empty(4), np.ones(4 * SIZE + 1)),
                     lambda: diomp.allgatherv(np.empty(9 * SIZE), [1] * (SIZE + 1), np.ones(1)),
                     lambda: diomp.allgatherv(np.empty(9 * SIZE), [1] * SIZE, np.ones(2)),
                     lambda: diomp.allreduce(np.empty(3, "f4"), np.ones(3)),
                     lambda: diomp.allreduce(np.empty(3, "S4"), np.zeros(3, "S4")),
                     lambda: diomp.allreduce(np.empty(3, ">i4"), np.zeros(3, ">i4"))):
            with self.fails(Status.ERR_ARG):
                call()
        with self.fails(Status.ERR_RANGE, "too small"):
            diomp.allgatherv(np.empty(2 * SIZE - 1), [2] * SIZE, np.ones(2))

    def test_atomics(self):
        with self.fails(Status.ERR_ARG, "one element", "a[i:i+1]"):
            diomp.atomic_add(RIGHT, self.target[0], 1)
        with self.fails(Status.ERR_ARG):
            diomp.atomic_or(RIGHT, self.target[0, :1], 1)
        with self.fails(Status.ERR_ARG, "uint64"):
            diomp.signal_wait(self.target[0, :1], diomp.CMP_EQ, 0)

    def test_members_disagree(self):
        if SIZE == 1:
            return
        with self.fails(Status.ERR_MISMATCH, "allreduce"):
            diomp.allreduce(np.empty(3), np.ones(3), diomp.SUM if ME == 0 else diomp.MAX)

    def test_freed_by_one_rank_only(self):
        if SIZE == 1:
            return
        made = diomp.zeros(3)
        with self.fails(Status.ERR_MISMATCH, "collective free"):
            if ME == 0:
                diomp.free(made)
            else:
                diomp.barrier()
        made[0] = 1  # it has not been freed
        diomp.free(made)

    def test_error_is_a_normal_exception(self):
        error = diomp.Error(-3, "text")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((again.status, str(again)), (Status.ERR_ADDRESS, "text"))
        self.assertIsInstance(error, RuntimeError)
        self.assertTrue(diomp.status_string(-3))


if __name__ == "__main__":
    main()
