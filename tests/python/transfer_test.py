# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""put and get: all dtypes, sizes, strides; signals."""
import itertools

import numpy as np

import diomp
from support import DTYPES, LEFT, ME, RIGHT, SIZE, TestCase, main


class Transfer(TestCase):
    def test_all_dtypes(self):
        for dtype in (*DTYPES, "S5", "datetime64[s]", [("x", "i4"), ("y", "f8")]):
            target = diomp.zeros(7, dtype)
            source = np.frombuffer(bytes((ME + i) % 2 for i in range(7 * target.itemsize)), dtype).copy()
            diomp.put(RIGHT, target, source)
            diomp.barrier()
            wanted = bytes((LEFT + i) % 2 for i in range(7 * target.itemsize))
            self.assertEqual(target.tobytes(), wanted)
            self.assertIs(diomp.get(source, LEFT, target), source)
            self.assertEqual(source.tobytes(), bytes(((ME - 2) % SIZE + i) % 2 for i in range(7 * target.itemsize)))
            diomp.barrier()
            diomp.free(target)

    def test_sizes(self):
        target = diomp.zeros(1 << 18, "i4")
        for count in (0, 1, 2, 15, 16, 17, 1000, 4096, 4097, 65536, 1 << 18):
            diomp.barrier()
            diomp.put(RIGHT, target[:count], np.arange(count, dtype="i4") + ME)
            diomp.barrier()
            np.testing.assert_array_equal(target[:count], np.arange(count) + LEFT)
        diomp.barrier()
        diomp.free(target)

    def test_strides_of_both_sides(self):
        slices = (slice(None), slice(None, None, 2), slice(1, 5), slice(6, 1, -2), slice(None, None, -1))
        whole = diomp.zeros((7, 8, 9), "i2")
        local = np.arange(7 * 8 * 9, dtype="i2").reshape(7, 8, 9) + ME
        for picked in itertools.product(slices, repeat=3):
            whole[...] = -1
            diomp.barrier()
            shape = whole[picked].shape
            source = local[:shape[0], :shape[1], :shape[2]]
            diomp.put(RIGHT, whole[picked], source)
            diomp.barrier()
            wanted = np.full_like(local, -1)
            wanted[picked] = source - ME + LEFT
            np.testing.assert_array_equal(whole, wanted)
            got = np.zeros(shape[::-1], "i2").T
            diomp.get(got, RIGHT, whole[picked])
            np.testing.assert_array_equal(got, source)
            diomp.barrier()
        diomp.free(whole)

    def test_empty_arrays(self):
        whole = diomp.zeros((4, 5))
        for picked in (np.s_[0:0], np.s_[:2, :0], np.s_[3:1, ::2]):
            view = whole[picked]
            for empty in (np.zeros(view.shape), np.empty_like(view), np.zeros(view.shape[::-1]).T):
                diomp.get(empty, RIGHT, view)
                diomp.get(dst=empty, rank=RIGHT, src=view)
                diomp.get_nb(empty, RIGHT, view).wait()
                diomp.put(RIGHT, view, empty)
                diomp.put(rank=RIGHT, dst=view, src=empty)
                diomp.put_nb(RIGHT, view, empty).wait()
        diomp.barrier()
        np.testing.assert_array_equal(whole, np.zeros((4, 5)))
        diomp.free(whole)

    def test_transposed_fields_and_broadcasts(self):
        square = diomp.zeros((5, 5))
        source = np.arange(25.0).reshape(5, 5) + ME
        diomp.put(RIGHT, square.T, source)
        diomp.barrier()
        np.testing.assert_array_equal(square.T, np.arange(25.0).reshape(5, 5) + LEFT)
        particles = diomp.zeros(6, [("mass", "f4"), ("x", "f8", (3,))])
        diomp.barrier()
        diomp.put(RIGHT, particles["x"][:, 1], np.arange(6.0) * ME)
        diomp.put(RIGHT, particles["mass"], np.broadcast_to(np.float32(ME + 1), 6))
        diomp.barrier()
        np.testing.assert_array_equal(particles["x"], np.outer(np.arange(6.0) * LEFT, [0, 1, 0]))
        np.testing.assert_array_equal(particles["mass"], np.full(6, LEFT + 1))
        diomp.barrier()
        diomp.free(square)
        diomp.free(particles)

    def test_scalars_and_lists_as_sources(self):
        target = diomp.zeros(4)
        diomp.put(RIGHT, target[1:2], 3)
        diomp.put(RIGHT, target[2:], [1, 2.5 + ME])
        diomp.barrier()
        self.assertEqual(target.tolist(), [0, 3, 1, 2.5 + LEFT])
        diomp.barrier()
        diomp.free(target)

    def test_extents_of_one_do_not_matter(self):
        target = diomp.zeros((3, 1, 4))
        diomp.put(RIGHT, target[1], np.full(4, 2.0))
        diomp.put(RIGHT, target[2, 0], np.full((1, 4), 3.0))
        diomp.barrier()
        self.assertEqual(target[:, 0, 0].tolist(), [0, 2, 3])
        diomp.barrier()
        diomp.free(target)

    def test_put_signal(self):
        signal = diomp.zeros(1, "u8")
        data = diomp.zeros(50000)
        for step in range(1, 20):
            diomp.put_signal(RIGHT, data, np.full(50000, float(step + ME)), signal, step)
            diomp.signal_wait(signal, diomp.CMP_GE, step)
            self.assertTrue((data == step + LEFT).all())
            diomp.barrier()
        diomp.put_signal(RIGHT, data[:2], np.arange(8.0)[::4], signal, 5, diomp.SIGNAL_ADD)
        diomp.wait_until(signal, diomp.CMP_EQ, 24)
        self.assertEqual(data[:2].tolist(), [0, 4])
        diomp.barrier()
        diomp.free(signal)
        diomp.free(data)

    def test_fences(self):
        target = diomp.zeros(1)
        diomp.put(RIGHT, target, 1.0)
        diomp.fence()
        diomp.fence(diomp.WORLD)
        diomp.wait_rma(diomp.RMA_ALL)
        self.assertEqual(diomp.get(np.empty(1), RIGHT, target)[0], 1)
        self.assertTrue(diomp.path_info(RIGHT))
        diomp.barrier()
        diomp.free(target)


if __name__ == "__main__":
    main()
