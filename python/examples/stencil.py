# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parallel Research Kernel stencil: a star of radius 2 on a square grid whose rows are divided among the ranks.

    diomp-run -n 4 python3 stencil.py --size 1000
Each rank puts its two outer rows into the halos of its neighbours, with a signal. Operations per iteration: 19
(2 * (4 * radius + 1) + 1) for each interior point, as the kernel defines it.
"""
import sys

import numpy as np

import diomp
from kernel import local_part, measure, options, report

RADIUS = 2
WEIGHTS = tuple(1.0 / (2 * distance * RADIUS) for distance in range(1, RADIUS + 1))


def add_star(points, result, begin, end):
    near, far = WEIGHTS
    for i in range(begin, end):
        # Rows of their own, indexed from 0: Numba then knows that no index is negative, and LLVM uses vectors.
        below2, below, here, above, above2 = points[i - 2], points[i - 1], points[i], points[i + 1], points[i + 2]
        total = result[i]
        for j in range(points.shape[1] - 2 * RADIUS):
            total[j + 2] += (near * (above[j + 2] - below[j + 2] + here[j + 3] - here[j + 1])
                             + far * (above2[j + 2] - below2[j + 2] + here[j + 4] - here[j]))


class Grid:
    """A rank's rows with a halo of two rows on each side."""

    def __init__(self, given):
        order = given.size
        me, ranks = diomp.rank(), diomp.num_ranks()
        self.order, self.rows = order, order // ranks
        self.below = me - 1 if me > 0 else None
        self.above = me + 1 if me + 1 < ranks else None
        self.points = diomp.zeros((self.rows + 2 * RADIUS, order))
        self.signals = diomp.zeros(2, "u8")
        self.steps = 0
        first = me * self.rows
        self.points[RADIUS:-RADIUS] = np.arange(first, first + self.rows)[:, None] + np.arange(order)
        # Rows of this rank that are in the interior of the whole grid.
        self.begin = max(RADIUS, first) - first + RADIUS
        self.end = min(order - RADIUS, first + self.rows) - first + RADIUS
        self.result = np.zeros((self.rows + 2 * RADIUS, order))
        self.scratch = np.empty((self.rows + 2 * RADIUS, order))
        self.update = local_part(given, add_star, self.add_star_arrays)

    def exchange(self):
        self.steps += 1
        inner, signals = self.points[RADIUS:-RADIUS], self.signals
        if self.below is not None:
            diomp.put_signal(self.below, self.points[-RADIUS:], inner[:RADIUS], signals[1:], self.steps)
        if self.above is not None:
            diomp.put_signal(self.above, self.points[:RADIUS], inner[-RADIUS:], signals[:1], self.steps)
        for neighbour, signal in ((self.below, signals[:1]), (self.above, signals[1:])):
            if neighbour is not None:
                diomp.signal_wait(signal, diomp.CMP_GE, self.steps)

    def add_star_arrays(self, points, result, begin, end):
        columns = slice(RADIUS, -RADIUS)
        total, scratch = result[begin:end, columns], self.scratch[begin:end, columns]
        for distance, weight in enumerate(WEIGHTS, 1):
            for plus, minus in (
                    (points[begin + distance:end + distance, columns], points[begin - distance:end - distance, columns]),
                    (points[begin:end, RADIUS + distance:self.order - RADIUS + distance],
                     points[begin:end, RADIUS - distance:self.order - RADIUS - distance])):
                np.subtract(plus, minus, out=scratch)
                np.multiply(scratch, weight, out=scratch)
                np.add(total, scratch, out=total)

    def step(self):
        self.exchange()
        self.update(self.points, self.result, self.begin, self.end)
        diomp.barrier()  # all ranks have read their halos
        np.add(self.points[RADIUS:-RADIUS], 1.0, out=self.points[RADIUS:-RADIUS])


def main():
    given = options("PRK stencil", 1000)
    ranks = diomp.num_ranks()
    if given.size % ranks != 0 or given.size // ranks < 2 * RADIUS:
        sys.exit(f"stencil: {given.size} rows cannot be divided among {ranks} ranks; pass another --size")
    grid = Grid(given)
    seconds = measure(given.iterations, grid.step)
    # The function is linear and the weights' sum is that of its derivatives: 2 per iteration at each point.
    inside = grid.result[grid.begin:grid.end, RADIUS:-RADIUS]
    interior = (given.size - 2 * RADIUS) ** 2
    rate = (2 * (4 * RADIUS + 1) + 1) * interior / seconds / 1e6
    report("stencil", np.allclose(inside, 2.0 * (given.iterations + 1)), rate, "MFlop/s", seconds)


if __name__ == "__main__":
    main()
