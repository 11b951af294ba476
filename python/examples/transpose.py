# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parallel Research Kernel transpose: B += A^T of a matrix whose columns are divided among the ranks.

    diomp-run -n 4 python3 transpose.py --size 1000
Each rank gets the block of every other rank that its columns of B need, one after another; the block is transposed
as it is added. Bytes per iteration: two matrices of 8-byte elements, as the kernel defines it.
"""
import sys

import numpy as np

import diomp
from kernel import local_part, measure, options, report

TILE = 32


def add_transposed(to, block):
    width = block.shape[0]
    for first_row in range(0, width, TILE):
        for first_column in range(0, width, TILE):
            tile = to[first_row:first_row + TILE, first_column:first_column + TILE]
            source = block[first_column:first_column + TILE, first_row:first_row + TILE]
            for i in range(tile.shape[0]):
                for j in range(tile.shape[1]):
                    tile[i, j] += source[j, i]


def add_transposed_arrays(to, block):
    to += block.T


def main():
    given = options("PRK transpose", 1000)
    me, ranks, order = diomp.rank(), diomp.num_ranks(), given.size
    if order % ranks != 0:
        sys.exit(f"transpose: the order {order} is not divisible by {ranks} ranks; pass another --size")
    width = order // ranks
    # Row i of a rank's arrays is column `me * width + i` of the matrix.
    a = diomp.empty((width, order))
    a[...] = np.arange(me * width, (me + 1) * width)[:, None] * order + np.arange(order)
    b = np.zeros((width, order))
    block = np.empty((width, width))

    add = local_part(given, add_transposed, add_transposed_arrays)

    def step():
        diomp.barrier()  # all ranks have changed their columns
        for distance in range(ranks):
            peer = (me + distance) % ranks
            diomp.get(block, peer, a[:, me * width:(me + 1) * width])
            add(b[:, peer * width:(peer + 1) * width], block)
        diomp.barrier()  # all ranks have read them
        np.add(a, 1.0, out=a)

    seconds = measure(given.iterations, step)
    calls = given.iterations + 1
    first = np.arange(order)[None, :] * order + np.arange(me * width, (me + 1) * width)[:, None]
    wanted = first * float(calls) + calls * (calls - 1) / 2
    rate = 2 * 8 * order * order / seconds / 1e6
    report("transpose", np.abs(b - wanted).sum() <= 1e-8 * wanted.sum(), rate, "MB/s", seconds)


if __name__ == "__main__":
    main()
