# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parallel Research Kernel nstream: A += B + s * C on arrays of each rank; measures memory bandwidth.

    diomp-run -n 4 python3 nstream.py --size 2000000
Bytes per iteration: four arrays of 8-byte elements (A is read and written).
"""
import numpy as np

import diomp
from kernel import local_part, measure, options, report

SCALAR = 3.0


def add_scaled(a, b, c):
    for i in range(a.size):
        a[i] += b[i] + SCALAR * c[i]


def main():
    given = options("PRK nstream", 2_000_000)
    a = diomp.zeros(given.size)
    b = diomp.full(given.size, 2.0)
    c = diomp.full(given.size, 2.0)
    scratch = np.empty(given.size)

    def add_scaled_arrays(a, b, c):
        np.multiply(c, SCALAR, out=scratch)
        np.add(scratch, b, out=scratch)
        np.add(a, scratch, out=a)

    add = local_part(given, add_scaled, add_scaled_arrays)
    seconds = measure(given.iterations, lambda: add(a, b, c))
    wanted = (given.iterations + 1) * (2.0 + SCALAR * 2.0)
    rate = 4 * 8 * given.size * diomp.num_ranks() / seconds / 1e6
    report("nstream", np.abs(a - wanted).sum() <= 1e-8 * wanted * given.size, rate, "MB/s", seconds)


if __name__ == "__main__":
    main()
