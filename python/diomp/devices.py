# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in the memory of devices."""
import math
import numbers
from typing import Any, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import _core
from .constants import MemKind

Shape = Union[int, Sequence[int]]


class SupportsDLPack(Protocol):
    """An array of another package, on the host or a device of this rank."""

    def __dlpack__(self, *, stream: Optional[Any] = None) -> Any:
        """A capsule of DLPack."""

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Type and number of the device."""


class SupportsCudaArray(Protocol):
    """An array of another package in the memory of a CUDA device of this rank."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]:
        """Address, shape, type and strides."""


class DeviceArray:
    """An array in the memory of a device, made by device_empty() and its relatives.

    Basic indexing gives views. put, get and the collectives take it as they take NumPy arrays; other
    packages load it by DLPack or __cuda_array_interface__, and libraries of target regions by
    `address`. The memory is freed by free() or collect() only.
    """

    __slots__ = ("_layout",)
    __array_priority__ = 1000.0

    def __init__(self, layout: np.ndarray) -> None:
        self._layout = layout

    @property
    def shape(self) -> Tuple[int, ...]:
        """Extents."""
        return self._layout.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._layout.dtype

    @property
    def strides(self) -> Tuple[int, ...]:
        """Distances in bytes."""
        return self._layout.strides

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._layout.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._layout.size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self._layout.nbytes

    @property
    def address(self) -> int:
        """Device address of the first element, for is_device_ptr."""
        return self._layout.__array_interface__["data"][0]

    @property
    def device(self) -> int:
        """OpenMP's number of the device."""
        return _core.layout_device(self._layout)

    @property
    def T(self) -> "DeviceArray":  # noqa: N802
        """The view with reversed dimensions."""
        return DeviceArray(self._layout.T)

    def __len__(self) -> int:
        return len(self._layout)

    def __getitem__(self, key: Any) -> "DeviceArray":
        keys = key if isinstance(key, tuple) else (key,)
        for each in keys:
            if not (each is None or each is Ellipsis or isinstance(each, (slice, numbers.Integral))) or isinstance(each, bool):
                raise TypeError("a device array is indexed by numbers, slices, None and '...'; other indices would copy")
        if not any(each is Ellipsis for each in keys):
            keys += (Ellipsis,)  # a view of one element, where NumPy would load it
        return DeviceArray(self._layout[keys])

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("a device array is not converted implicitly; copy it by to_host()")

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device})"

    def reshape(self, *shape: Any) -> "DeviceArray":
        """A view of another shape; the array must be contiguous."""
        view = self._layout.view()
        view.shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], numbers.Integral) else shape
        return DeviceArray(view)

    def to_host(self) -> np.ndarray:
        """A copy as a NumPy array. Blocks."""
        made = np.empty(self.shape, self.dtype)
        _core.get(made, _core.rank(), self)
        return made

    def assign(self, values: npt.ArrayLike) -> None:
        """Copies values of the same shape, or one value, to the device. Blocks."""
        source = np.empty(self.shape, self.dtype)
        source[...] = values
        _core.put(_core.rank(), self, source)
        _core.fence()

    def __dlpack__(self, *, stream: Optional[Any] = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """The memory for other packages, without a copy. diomp's own transfers do not use their streams: synchronise
        them before a transfer, and complete transfers before the use."""
        if copy:
            raise BufferError("a device array is exported without a copy only")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("a device array is exported on its own device only; copy it by to_host()")
        return _core.to_dlpack(self._layout)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """DLPack's type and number of the device; a host device is a CPU."""
        return _core.export_device(self._layout)

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]:
        """The memory for packages that use CUDA; not there for devices of other kinds."""
        if self.__dlpack_device__()[0] != 2:
            raise AttributeError("__cuda_array_interface__: the array is not on a CUDA device")
        interface = self._layout.__array_interface__
        return {"shape": self.shape, "typestr": interface["typestr"], "data": (self.address, False),
                "strides": self.strides, "version": 3, "stream": None}


Operand = Union[np.ndarray, DeviceArray, SupportsDLPack, SupportsCudaArray]
Source = Union[Operand, npt.ArrayLike]
OperandT = TypeVar("OperandT", np.ndarray, DeviceArray, SupportsDLPack, SupportsCudaArray)


def device_empty(shape: Shape, dtype: npt.DTypeLike = float, device: Optional[int] = None, *,
                 kind: MemKind = MemKind.SYMMETRIC, order: str = "C") -> DeviceArray:
    """An array on a device, not initialised. `device` is OpenMP's number, by default the rank's first one.

    Collective for symmetric memory (equal shapes on all ranks) and asymmetric memory (any shapes).
    """
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}; pass 'C' or 'F'")
    on = _core.rank_device(0) if device is None else device
    if on < 0:
        raise ValueError(f"device is {on}; pass a number of diomp.rank_device, or use diomp.empty for host memory")
    return DeviceArray(_core.allocate(shape, dtype, int(kind), order == "F", False, on))


def device_full(shape: Shape, value: Any, dtype: npt.DTypeLike = None, device: Optional[int] = None, *,
                kind: MemKind = MemKind.SYMMETRIC, order: str = "C") -> DeviceArray:
    """device_empty(), filled with a value on all ranks before it returns on any: puts may follow at once."""
    made = device_empty(shape, np.asarray(value).dtype if dtype is None else dtype, device, kind=kind, order=order)
    if math.prod(made.shape) > 0:
        made.assign(value)
    if kind != MemKind.LOCAL:
        _core.barrier()
    return made


def device_zeros(shape: Shape, dtype: npt.DTypeLike = float, device: Optional[int] = None, *,
                 kind: MemKind = MemKind.SYMMETRIC, order: str = "C") -> DeviceArray:
    """device_full() of zeros."""
    return device_full(shape, np.zeros((), dtype), dtype, device, kind=kind, order=order)


def device_array(values: npt.ArrayLike, dtype: npt.DTypeLike = None, device: Optional[int] = None, *,
                 kind: MemKind = MemKind.SYMMETRIC, order: str = "C") -> DeviceArray:
    """device_empty() with a copy of this rank's values; all ranks have copied theirs before it returns on any."""
    source = np.asarray(values, dtype=dtype)
    return device_full(source.shape, source, source.dtype, device, kind=kind, order=order)
