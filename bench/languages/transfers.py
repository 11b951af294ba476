# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds per put and get from Python, with the sizes, counts and lines of transfers.c."""
import statistics
import time

import numpy as np

import diomp

ROUNDS = 15
LARGEST = 4 << 20

peer = diomp.num_ranks() - 1
target = diomp.zeros(LARGEST, "u1")
source = diomp.full(LARGEST, 1, "u1", kind=diomp.MemKind.LOCAL)
diomp.barrier()
if diomp.rank() == 0:
    for nbytes in (8, 65536, 1 << 20, 4 << 20):
        count = 20000 if nbytes == 8 else (64 << 20) // nbytes
        there, here = target[:nbytes], source[:nbytes]
        for name in ("put", "get"):
            call, arguments = (diomp.put, (peer, there, here)) if name == "put" else (diomp.get, (here, peer, there))
            seconds = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                for _ in range(count):
                    call(*arguments)
                diomp.fence()
                seconds.append((time.perf_counter() - begin) / count)
            print(name, nbytes, f"{statistics.median(seconds):.4g}")
diomp.barrier()
assert np.all(target[:8] == (1 if diomp.rank() == peer else 0)) or diomp.num_ranks() == 1
