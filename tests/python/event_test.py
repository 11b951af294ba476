# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Events: waits, tests, coroutines, and events that a program drops."""
import asyncio
import gc
import threading

import numpy as np

import diomp
from support import LEFT, ME, RIGHT, SIZE, TestCase, main


class Event(TestCase):
    def test_put_and_get(self):
        target = diomp.zeros(30000)
        diomp.put_nb(RIGHT, target, np.full(30000, ME + 1.0)).wait()
        diomp.barrier()
        self.assertTrue((target == LEFT + 1).all())
        got = np.empty(30000)
        event = diomp.get_nb(got, RIGHT, target)
        while not event.test():
            pass
        self.assertTrue(event.test())
        event.wait()
        self.assertTrue((got == ME + 1).all())
        diomp.barrier()
        diomp.free(target)

    def test_views_with_strides(self):
        target = diomp.zeros((4, 6))
        diomp.put_nb(RIGHT, target[:, ::2], np.full((4, 3), 2.0)).wait()
        diomp.barrier()
        self.assertEqual(target.sum(), 24)
        got = np.empty((4, 3))
        diomp.get_nb(got, RIGHT, target[:, ::2]).wait()
        self.assertEqual(got.sum(), 24)
        diomp.barrier()
        diomp.free(target)

    def test_temporaries_live_until_completion(self):
        target = diomp.zeros((20, 10000))
        events = [diomp.put_nb(RIGHT, target[i], np.full(10000, float(i))) for i in range(20)]
        gc.collect()
        for event in events:
            event.wait()
        diomp.barrier()
        np.testing.assert_array_equal(target.sum(axis=1), 10000.0 * np.arange(20))
        diomp.barrier()
        diomp.free(target)

    def test_dropped_events(self):
        target = diomp.zeros(10000)
        diomp.put_nb(RIGHT, target, np.ones(10000))
        total = np.empty(1)
        diomp.allreduce_nb(total, np.ones(1))
        gc.collect()
        diomp.barrier()
        self.assertTrue((target == 1).all())
        diomp.barrier_nb()
        diomp.barrier()
        diomp.free(target)

    def test_coroutines(self):
        total = np.empty(1)
        steps = []

        async def communicate():
            await diomp.allreduce_nb(total, np.array([ME + 1.0]))
            await diomp.barrier_nb()
            steps.append("done")

        async def compute():
            for _ in range(5):
                steps.append("step")
                await asyncio.sleep(0)

        async def both():
            await asyncio.gather(communicate(), compute())

        asyncio.run(both())
        self.assertEqual(total[0], SIZE * (SIZE + 1) / 2)
        self.assertEqual((steps.count("done"), steps.count("step")), (1, 5))

    def test_blocking_calls_release_the_lock_of_the_interpreter(self):
        flag = diomp.zeros(1, "u8")
        waiter = threading.Thread(target=diomp.signal_wait, args=(flag, diomp.CMP_EQ, 1))
        waiter.start()
        diomp.put_signal(ME, flag[:0], flag[:0], flag, 1)  # from this thread, while the other one waits
        waiter.join()
        diomp.free(flag)


if __name__ == "__main__":
    main()
