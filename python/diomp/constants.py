# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators, comparisons and kinds, with the numbers of diomp.h."""
import enum


class Op(enum.IntEnum):
    """Predefined operators of reductions."""

    SUM = 1
    PROD = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    LAND = 8
    LOR = 9
    AVG = 12


class Cmp(enum.IntEnum):
    """Comparisons of signal_wait and wait_until."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class MemKind(enum.IntEnum):
    """Kinds of global memory."""

    NONE = 0
    SYMMETRIC = 1
    ASYMMETRIC = 2
    LOCAL = 3
    REGISTERED = 4


class Signal(enum.IntEnum):
    """What put_signal does with the signal."""

    SET = 0
    ADD = 1


class Rma(enum.IntFlag):
    """Kinds of transfers, for wait_rma."""

    PUT = 1
    GET = 2
    ATOMIC = 4
    ALL = 7


SUM, PROD, MIN, MAX = Op.SUM, Op.PROD, Op.MIN, Op.MAX
BAND, BOR, BXOR, LAND, LOR, AVG = Op.BAND, Op.BOR, Op.BXOR, Op.LAND, Op.LOR, Op.AVG
CMP_EQ, CMP_NE, CMP_GT = Cmp.EQ, Cmp.NE, Cmp.GT
CMP_GE, CMP_LT, CMP_LE = Cmp.GE, Cmp.LT, Cmp.LE
SIGNAL_SET, SIGNAL_ADD = Signal.SET, Signal.ADD
RMA_PUT, RMA_GET, RMA_ATOMIC, RMA_ALL = Rma.PUT, Rma.GET, Rma.ATOMIC, Rma.ALL
