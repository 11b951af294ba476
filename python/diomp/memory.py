# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy arrays in global memory."""
from typing import Any, NamedTuple, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _core
from .constants import LAND, MemKind

Shape = Union[int, Sequence[int]]


class AddressInfo(NamedTuple):
    """Where an array is: `rank` is -1 and `kind` NONE if it is not in global memory."""

    rank: int
    kind: MemKind
    offset: int
    nbytes: int


class SegmentInfo(NamedTuple):
    """Sizes in bytes of this rank's segment."""

    nbytes: int
    symmetric_used: int
    local_used: int
    largest_free: int
    resident: int
    num_allocations: int


def _allocate(shape: Shape, dtype: npt.DTypeLike, kind: MemKind, order: str, zero: bool) -> np.ndarray:
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}; pass 'C' or 'F'")
    return _core.allocate(shape, dtype, int(kind), order == "F", zero)


def _agree(kind: MemKind) -> None:
    """All ranks have initialised their memory, so that puts may follow at once."""
    if kind != MemKind.LOCAL:
        _core.barrier()


def empty(shape: Shape, dtype: npt.DTypeLike = float, *, kind: MemKind = MemKind.SYMMETRIC,
          order: str = "C") -> np.ndarray:
    """An array in global memory, not initialised.

    Collective for symmetric memory (equal shapes on all ranks) and asymmetric memory (any shapes).
    The memory is freed by free() or collect() only, never by the garbage collector of one rank.
    """
    return _allocate(shape, dtype, kind, order, False)


def zeros(shape: Shape, dtype: npt.DTypeLike = float, *, kind: MemKind = MemKind.SYMMETRIC,
          order: str = "C") -> np.ndarray:
    """empty(), with zeros on all ranks before it returns on any: puts may follow at once."""
    made = _allocate(shape, dtype, kind, order, True)
    _agree(kind)
    return made


def full(shape: Shape, value: Any, dtype: npt.DTypeLike = None, *, kind: MemKind = MemKind.SYMMETRIC,
         order: str = "C") -> np.ndarray:
    """empty(), filled with a value on all ranks before it returns on any."""
    made = _allocate(shape, np.asarray(value).dtype if dtype is None else dtype, kind, order, False)
    made[...] = value
    _agree(kind)
    return made


def array(values: npt.ArrayLike, dtype: npt.DTypeLike = None, *, kind: MemKind = MemKind.SYMMETRIC,
          order: str = "C") -> np.ndarray:
    """empty(), with a copy of this rank's values; all ranks have copied theirs before it returns on any."""
    source = np.asarray(values, dtype=dtype)
    made = _allocate(source.shape, source.dtype, kind, order, False)
    made[...] = source
    _agree(kind)
    return made


def collect() -> int:
    """Frees the arrays that no rank refers to any more, and returns their number. Collective.

    The garbage collectors of the ranks run at different times, so none of them frees memory; this is
    where the ranks agree. Arrays in reference cycles count once gc.collect() has found them.
    """
    mine = np.array(_core.dropped(), dtype=bool)
    agreed = np.empty_like(mine)
    _core.allreduce(agreed, mine, LAND)
    return _core.free_marked(agreed.tolist())


_registered: "dict[int, np.ndarray]" = {}


def _address(values: np.ndarray) -> int:
    return values.__array_interface__["data"][0]


def register(values: np.ndarray) -> None:
    """Makes the memory of a contiguous array accessible to all ranks, at its address; keeps it alive."""
    _core.register(values)
    _registered[_address(values)] = values


def unregister(values: np.ndarray) -> None:
    """Ends the registration."""
    _core.unregister(values)
    _registered.pop(_address(values), None)


def address_info(values: np.ndarray) -> AddressInfo:
    """Describes the address of the array's first element."""
    rank, kind, offset, nbytes = _core.address_info(values)
    return AddressInfo(rank, MemKind(kind), offset, nbytes)


def segment_info() -> SegmentInfo:
    """Describes this rank's segment."""
    return SegmentInfo(*_core.segment_info())
