# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of bench/compare: libraries and how they are started, results and their table, goals."""
