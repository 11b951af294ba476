# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of ranks: made, split, merged, translated, used."""
import numpy as np

import diomp
from support import ME, SIZE, TestCase, main


class Groups(TestCase):
    def test_world(self):
        self.assertEqual((diomp.WORLD.size, diomp.WORLD.rank, diomp.WORLD.world_rank(SIZE - 1)), (SIZE, ME, SIZE - 1))

    def test_split_and_use(self):
        half = diomp.WORLD.split(ME % 2, key=-ME)
        members = [r for r in range(SIZE) if r % 2 == ME % 2][::-1]
        self.assertEqual([half.world_rank(i) for i in range(half.size)], members)
        total = np.empty(1, int)
        diomp.allreduce(total, np.array([ME]), group=half)
        self.assertEqual(total[0], sum(members))
        diomp.barrier(half)
        self.assertEqual(diomp.WORLD.translate(range(SIZE), half),
                         [members.index(r) if r in members else None for r in range(SIZE)])
        half.free()
        self.assertIsNone(diomp.WORLD.split(-1))

    def test_create_dup_merge(self):
        first = diomp.Group.create([0]) if ME == 0 else None
        whole = diomp.Group.create(list(range(SIZE))[::-1])
        self.assertEqual(whole.rank, SIZE - 1 - ME)
        other = whole.dup()
        merged = diomp.Group.merge(first, other)
        self.assertEqual((merged.size, merged.world_rank(0)), (SIZE, 0))
        for group in filter(None, (merged, other, whole, first)):
            group.free()

    def test_endpoints(self):
        hosts = diomp.Group.create_endpoints([(r, -1) for r in range(SIZE)])
        self.assertEqual(hosts.endpoint(SIZE - 1), (SIZE - 1, -1))
        diomp.barrier(hosts)
        hosts.free()

    def test_misuse(self):
        with self.fails(diomp.Status.ERR_ARG):
            diomp.Group.create([ME, ME])
        with self.fails(diomp.Status.ERR_RANK):
            diomp.WORLD.world_rank(SIZE)
        group = diomp.WORLD.dup()
        group.free()
        with self.fails(diomp.Status.ERR_ARG):
            diomp.barrier(group)


if __name__ == "__main__":
    main()
