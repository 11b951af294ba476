#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a float32 velocity model that differs at every point: FILE NX NY NZ, without numpy."""
import array
import sys

path, nx, ny, nz = sys.argv[1], *map(int, sys.argv[2:5])
values = array.array("f", (1500.0 + (37 * x + 11 * y + 5 * z) % 1500
                           for x in range(nx) for y in range(ny) for z in range(nz)))
with open(path, "wb") as file:
    values.tofile(file)
