# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in device memory, and objects that export theirs: by DLPack, and by __cuda_array_interface__ (a scripted object).

    device_test.py KERNELS
"""
import ctypes
import gc
import sys

import numpy as np

KERNELS = ctypes.CDLL(sys.argv.pop(1))  # before diomp, which then finds its devices

import diomp  # noqa: E402
from diomp import Status  # noqa: E402
from support import LEFT, ME, RIGHT, SIZE, TestCase, main  # noqa: E402

KERNELS.scale.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_int]


class CudaArray:
    """What a package of CUDA arrays exports, at any address."""

    def __init__(self, address, shape, strides=None, typestr="<f8", **more):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "data": (address, False), "strides": strides,
                                         "version": 3, **more}


class Tensor:
    """What a package with DLPack exports, as NumPy does it."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Device(TestCase):
    def test_devices(self):
        self.assertGreaterEqual(diomp.num_rank_devices(), 1)
        made = diomp.device_zeros((3, 4), "f4")
        self.assertEqual((made.shape, made.dtype, made.ndim, made.size, made.nbytes, made.strides),
                         ((3, 4), np.dtype("f4"), 2, 12, 48, (16, 4)))
        self.assertEqual((made.device, len(made)), (diomp.rank_device(), 3))
        self.assertIn("shape=(3, 4)", repr(made))
        diomp.free(made)

    def test_put_and_get(self):
        source = diomp.device_array(np.arange(5000.0) + ME)
        target = diomp.device_zeros(5000)
        KERNELS.scale(source.address, source.size, 2.0, source.device)
        diomp.put(RIGHT, target, source)  # device to device
        diomp.barrier()
        np.testing.assert_array_equal(target.to_host(), 2 * (np.arange(5000.0) + LEFT))
        diomp.barrier()
        diomp.put(RIGHT, target[:10], np.full(10, 7.0))  # host to device
        diomp.put(RIGHT, target[10:12], [8.0, 9.0])
        diomp.barrier()
        got = np.empty(12)
        self.assertIs(diomp.get(got, RIGHT, target[:12]), got)  # device to host
        self.assertEqual(got.tolist(), [7.0] * 10 + [8.0, 9.0])
        back = diomp.device_zeros(5000)
        diomp.get_nb(back, RIGHT, source).wait()
        np.testing.assert_array_equal(back.to_host(), 2 * (np.arange(5000.0) + RIGHT))
        diomp.barrier()  # all have read what they got
        diomp.put_nb(RIGHT, back, source).wait()
        diomp.barrier()
        np.testing.assert_array_equal(back.to_host(), 2 * (np.arange(5000.0) + LEFT))
        diomp.barrier()
        for each in (source, target, back):
            diomp.free(each)

    def test_views_with_strides(self):
        field = diomp.device_zeros((6, 8))
        mine = np.arange(48.0).reshape(6, 8) + 100 * ME
        wanted = np.zeros((6, 8))
        for key in (np.s_[:, 3], np.s_[1:5:2, ::-1], np.s_[::-3, 1:8:3], np.s_[2], np.s_[..., -1:], np.s_[4, 5]):
            diomp.put(RIGHT, field[key], mine[key])
            wanted[key] = mine[key] - 100 * ME + 100 * LEFT
        diomp.barrier()
        np.testing.assert_array_equal(field.to_host(), wanted)
        got = np.zeros((4, 3))
        diomp.get(got, ME, field.T[1:8:2, ::-2])
        np.testing.assert_array_equal(got, wanted.T[1:8:2, ::-2])
        diomp.barrier()
        diomp.free(field)

    def test_dlpack_gives_the_memory(self):
        made = diomp.device_zeros((4, 5), "i4")
        kind, _ = made.__dlpack_device__()
        self.assertEqual(kind, 1)  # a host device
        self.assertFalse(hasattr(made, "__cuda_array_interface__"))
        seen = np.from_dlpack(made[1:, ::2])
        self.assertEqual((seen.shape, seen.strides), ((3, 3), (20, 8)))
        made.assign(5)
        self.assertTrue((seen == 5).all())
        # NumPy's view of the device's memory is an operand at both sides.
        whole = np.from_dlpack(made)
        diomp.barrier()
        got = np.zeros((4, 5), "i4")
        diomp.get(got, RIGHT, whole)
        self.assertEqual(got.sum(), 100)
        whole = seen = None
        gc.collect()
        for dtype in ("i1", "u2", "f2", "c16"):
            other = diomp.device_zeros(3, dtype)
            self.assertEqual(np.from_dlpack(other).dtype, np.dtype(dtype))
            diomp.free(other)
        for call in (lambda: made.__dlpack__(copy=True), lambda: made.__dlpack__(dl_device=(2, 0))):
            with self.assertRaises(BufferError):
                call()
        diomp.barrier()
        diomp.free(made)

    def test_capsules_keep_and_release_memory(self):
        made = diomp.device_zeros(10)
        used = sys.getrefcount(made._layout)
        unused = made.__dlpack__()
        view = np.from_dlpack(made)
        self.assertEqual(sys.getrefcount(made._layout), used + 2)
        del unused, view
        gc.collect()
        self.assertEqual(sys.getrefcount(made._layout), used)
        diomp.free(made)

    def test_objects_that_export_dlpack(self):
        target = diomp.zeros((3, 4))
        on_device = diomp.device_zeros((3, 4))
        values = np.arange(12.0).reshape(3, 4) + ME
        users = sys.getrefcount(values)
        diomp.put(RIGHT, target, Tensor(values))
        diomp.put(RIGHT, on_device[::-1], Tensor(values[:, :]))
        diomp.barrier()
        np.testing.assert_array_equal(target, values - ME + LEFT)
        np.testing.assert_array_equal(on_device.to_host(), (values - ME + LEFT)[::-1])
        got = np.zeros((4, 3))
        diomp.get(Tensor(got), RIGHT, on_device.reshape(4, 3))
        np.testing.assert_array_equal(got.ravel(), (values - ME + ME)[::-1].ravel())
        total = np.zeros((3, 4))
        diomp.allreduce(Tensor(total), Tensor(values))
        np.testing.assert_array_equal(total, SIZE * (values - ME) + SIZE * (SIZE - 1) / 2)
        gc.collect()
        self.assertEqual(sys.getrefcount(values), users)
        diomp.barrier()
        diomp.free(target)
        diomp.free(on_device)

    def test_objects_that_export_cuda_arrays(self):
        made = diomp.device_array(np.arange(20.0) + ME)
        target = diomp.device_zeros(20)
        diomp.put(RIGHT, CudaArray(target.address, (20,)), CudaArray(made.address, (20,)))
        diomp.barrier()
        np.testing.assert_array_equal(target.to_host(), np.arange(20.0) + LEFT)
        got = np.empty(10)
        diomp.get(got, RIGHT, CudaArray(made.address + 8, (10,), (16,)))
        np.testing.assert_array_equal(got, np.arange(20.0)[1::2] + RIGHT)
        with self.fails(Status.ERR_UNSUPPORTED, "stream", "synchronise"):
            diomp.put(RIGHT, target, CudaArray(made.address, (20,), stream=1))
        with self.fails(Status.ERR_UNSUPPORTED, "masked"):
            diomp.put(RIGHT, target, CudaArray(made.address, (20,), mask=made))
        with self.fails(Status.ERR_ADDRESS, "does not drive", "diomp.rank_device"):
            diomp.put(RIGHT, target, CudaArray(0x1000, (20,)))
        diomp.barrier()
        diomp.free(made)
        diomp.free(target)

    def test_collectives(self):
        mine = diomp.device_array(np.arange(6.0) + ME)
        ranks = np.arange(SIZE)[:, None]
        whole = diomp.device_zeros((SIZE, 6))
        total = diomp.device_zeros(6)
        for suffix in ("", "_nb"):
            def call(name, *args, suffix=suffix, **kwargs):
                event = getattr(diomp, name + suffix)(*args, **kwargs)
                if event is not None:
                    event.wait()
            total.assign(0)
            whole.assign(0)
            call("allreduce", total, mine)
            np.testing.assert_array_equal(total.to_host(), SIZE * np.arange(6) + SIZE * (SIZE - 1) / 2)
            call("allgather", whole, mine)
            np.testing.assert_array_equal(whole.to_host(), np.arange(6.0) + ranks)
            other = diomp.device_zeros((SIZE, 6))
            call("alltoall", other, whole)
            np.testing.assert_array_equal(other.to_host(), np.repeat(np.arange(6.0)[None] + ME, SIZE, axis=0))
            call("reduce_scatter", total, whole)
            np.testing.assert_array_equal(total.to_host(), SIZE * (np.arange(6) + ME))
            call("bcast", total, SIZE - 1)
            np.testing.assert_array_equal(total.to_host(), SIZE * (np.arange(6) + SIZE - 1))
            call("scan", total, mine)
            np.testing.assert_array_equal(total.to_host(), (ME + 1) * np.arange(6) + ME * (ME + 1) / 2)
            call("reduce", total if ME == 0 else None, mine, diomp.MAX)
            call("gather", whole if ME == 0 else None, mine)
            call("scatter", total, whole if ME == 0 else None)
            np.testing.assert_array_equal(total.to_host(), np.arange(6.0) + ME)
            call("allgatherv", whole, [6] * SIZE, mine)
            call("gatherv", whole if ME == 0 else None, [6] * SIZE, mine)
            call("scatterv", total, whole if ME == 0 else None, [6] * SIZE)
            call("alltoallv", other, [6] * SIZE, whole, [6] * SIZE)
            np.testing.assert_array_equal(total.to_host(), np.arange(6.0) + ME)
            diomp.barrier()
            diomp.free(other)
        for each in (mine, whole, total):
            diomp.free(each)

    def test_frees_are_collective(self):
        made = diomp.device_zeros(100)
        kept = diomp.device_zeros(100)
        gc.collect()
        self.assertEqual(diomp.collect(), 0)
        del made
        gc.collect()
        self.assertEqual(diomp.collect(), 1)
        view = kept[3:]
        diomp.free(kept)
        with self.fails(Status.ERR_ADDRESS, "has been freed"):
            diomp.get(np.empty(97), RIGHT, view)
        with self.fails(Status.ERR_ADDRESS, "has been freed"):
            view.__dlpack__()

    def test_misuse(self):
        made = diomp.device_zeros((2, 3))
        signal = diomp.zeros(1, "u8")
        for call in (lambda: made[[0, 1]], lambda: made[np.array([True, False])], lambda: made[True],
                     lambda: np.asarray(made), lambda: np.add(made, 1)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(IndexError):
            made[2]
        with self.assertRaises(ValueError):
            diomp.device_zeros(3, device=-1)
        with self.fails(Status.ERR_ARG):
            diomp.device_empty(3, device=1000)
        with self.fails(Status.ERR_ARG, "references to Python objects"):
            diomp.device_empty(3, object)
        with self.fails(Status.ERR_MISMATCH, "different shapes"):
            diomp.put(RIGHT, made, np.zeros((3, 2)))
        with self.fails(Status.ERR_ARG, "different dtypes"):
            diomp.put(RIGHT, made, np.zeros((2, 3), "f4"))
        with self.fails(Status.ERR_ARG, "not contiguous"):
            diomp.allreduce(made[:, 0], np.zeros(2))
        with self.fails(Status.ERR_ARG, "not on one device"):
            diomp.allreduce(made, np.zeros((2, 3)))
        with self.fails(Status.ERR_UNSUPPORTED, "takes no device memory"):
            diomp.put_signal(RIGHT, diomp.zeros(6), made.reshape(6), signal, 1)
        with self.fails(Status.ERR_ARG, "not a NumPy array in host memory"):
            diomp.atomic_add(RIGHT, made[0, :1], 1.0)
        with self.fails(Status.ERR_ADDRESS, "not allocated by this package"):
            diomp.free(CudaArray(made.address, (2, 3)))
        diomp.barrier()
        diomp.free(made)


if __name__ == "__main__":
    main()
