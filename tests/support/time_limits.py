# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of time for what is quick on an idle machine."""
import os

# Sanitizers make everything slower by their factor.
SLOWER = int(os.environ.get("DIOMP_TEST_SLOWER", "1"))


def scaled(seconds):
    """`seconds` on an idle machine; as much more as there are threads for each core now."""
    return seconds * SLOWER * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
