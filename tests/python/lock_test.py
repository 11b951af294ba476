# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locks of ranks and of threads."""
import time
import threading

import numpy as np

import diomp
from support import ME, SIZE, TestCase, main


class Locks(TestCase):
    def test_excludes_ranks(self):
        counter = diomp.zeros(1, "i8")
        value = np.empty(1, "i8")
        for _ in range(50):
            with diomp.Lock(SIZE - 1):
                diomp.get(value, 0, counter)
                diomp.put(0, counter, value + 1)
        diomp.barrier()
        self.assertEqual(diomp.get(value, 0, counter)[0], 50 * SIZE)
        diomp.barrier()
        diomp.free(counter)

    def test_excludes_threads(self):
        counter = diomp.zeros(1, "i8")

        def count():
            value = np.empty(1, "i8")
            for _ in range(20):
                with diomp.ThreadLock():
                    diomp.get(value, 0, counter)
                    diomp.put(0, counter, value + 1)

        threads = [threading.Thread(target=count) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        diomp.barrier()
        self.assertEqual(diomp.get(np.empty(1, "i8"), 0, counter)[0], 60 * SIZE)
        diomp.barrier()
        diomp.free(counter)

    def test_try(self):
        lock = diomp.Lock(0)
        if ME == 0:
            self.assertTrue(lock.acquire(blocking=False))
        diomp.barrier()
        if ME != 0:
            self.assertFalse(lock.acquire(blocking=False))
            began = time.monotonic()
            self.assertFalse(lock.acquire(timeout=0.05))
            self.assertGreaterEqual(time.monotonic() - began, 0.05)
            self.assertFalse(lock.acquire(timeout=0))
        diomp.barrier()
        if ME == 0:
            lock.release()
        diomp.barrier()
        self.assertTrue(lock.acquire(timeout=60))
        lock.release()
        for wrong in ({"blocking": False, "timeout": 1}, {"timeout": -2}):
            with self.assertRaises(ValueError):
                lock.acquire(**wrong)

    def test_misuse(self):
        with self.fails(diomp.Status.ERR_LOCK):
            diomp.Lock(ME).release()
        with diomp.Lock(ME):
            with self.fails(diomp.Status.ERR_LOCK):
                diomp.Lock(ME).acquire()
        with self.fails(diomp.Status.ERR_RANK):
            diomp.Lock(SIZE).acquire()


if __name__ == "__main__":
    main()
