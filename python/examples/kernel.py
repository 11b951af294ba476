# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the examples share: options, compiled loops, time of the slowest rank, the report."""
import argparse
import sys
import time

import numpy as np

import diomp

try:
    import numba
except ImportError:
    numba = None


def options(description, size):
    """Command line of a kernel: --iterations, --size."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--iterations", type=int, default=10, help="timed iterations, after one that is not timed")
    parser.add_argument("--size", type=int, default=size, help="order of the problem")
    parser.add_argument("--local", choices=["numba", "numpy", "python"], default="numpy" if numba is None else "numba",
                        help="what a rank computes alone: loops compiled by Numba, operations of NumPy, or plain loops "
                             "(default: Numba if it is installed)")
    return parser.parse_args()


def local_part(given, loops, arrays):
    """What a rank computes alone: the function `loops`, compiled or not, or the same by NumPy's operations, `arrays`."""
    if given.local == "numpy":
        return arrays
    return numba.njit(loops) if given.local == "numba" else loops


def measure(iterations, step):
    """Seconds per call of step() on the slowest rank; the first call is not counted."""
    step()
    diomp.barrier()
    begin = time.perf_counter()
    for _ in range(iterations):
        step()
    diomp.barrier()
    seconds = np.array([(time.perf_counter() - begin) / iterations])
    diomp.allreduce(seconds, seconds, diomp.MAX)
    return float(seconds[0])


def report(name, is_valid, rate, unit, seconds):
    """Prints the rate on rank 0 if the solution is valid on all ranks, ends with an error otherwise."""
    valid = np.array([bool(is_valid)])
    diomp.allreduce(valid, valid, diomp.LAND)
    if not valid[0]:
        sys.exit(f"{name}: rank {diomp.rank()}: the solution is wrong")
    if diomp.rank() == 0:
        print(f"{name}: {diomp.num_ranks()} ranks, solution validates, {rate:.1f} {unit}, {seconds * 1e3:.3f} ms per iteration")
