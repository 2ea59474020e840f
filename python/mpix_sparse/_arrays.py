# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of any library as address, type and shape, which is what the C library takes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import sys
from typing import Any

import numpy

from . import _dlpack, _types

STRIDED = ctypes.c_void_p(-13)  # MPIX_SPARSE_STRIDED: stands for an array that is not contiguous


class Array:
    """Memory with a type and a shape. Holds a reference to the owner, which keeps the memory alive. Strides
    in bytes are those of an array in host memory that is not contiguous. `size` is the number of elements.
    Every call makes some: a frozen dataclass would take three times as long."""

    __slots__ = "owner", "address", "type", "shape", "contiguous", "writable", "device", "strides", "size"

    def __init__(
        self,
        owner: Any,
        address: int,
        type: str,
        shape: tuple[int, ...],
        contiguous: bool,
        writable: bool,
        device: bool,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.owner, self.address, self.type, self.shape = owner, address, type, shape
        self.contiguous, self.writable, self.device, self.strides = contiguous, writable, device, strides
        self.size = math.prod(shape)

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The address for C, or STRIDED, which the C library refuses on all ranks of a collective call."""
        return ctypes.c_void_p(self.address) if self.contiguous else STRIDED

    def is_same_memory(self, other: Array) -> bool:
        """True if other has the same elements at the same addresses in the same order."""
        same_layout = (self.shape, self.strides) == (other.shape, other.strides)
        same_layout = same_layout or self.contiguous and other.contiguous
        same_memory = self.address == other.address and self.size == other.size and self.type == other.type
        return same_memory and same_layout

    def elements(self) -> numpy.ndarray:
        """Host memory as an array of NumPy."""
        return numpy.asarray(_HostMemory(self))

    def packed(self) -> Array:
        """This array if it is contiguous, on a device or of an unknown type, else a contiguous copy in C
        order."""
        if self.contiguous or self.device or self.strides is None:
            return self
        copy = numpy.ascontiguousarray(self.elements())
        return Array(copy, copy.ctypes.data, self.type, self.shape, True, True, False)

    def overlaps(self, other: Array) -> bool:
        """True if the arrays share memory. Both are contiguous and of types that can be reduced."""
        first, last = (self, other) if self.address <= other.address else (other, self)
        end = first.address + first.size * _types.item_size(first.type)
        return 0 < min(first.size, last.size) and last.address < end


class _HostMemory:
    """An array in host memory, for NumPy. It keeps the owner alive."""

    def __init__(self, array: Array) -> None:
        kind = numpy.dtype(stored_type(array.type)).str
        where = {"data": (array.address, not array.writable), "strides": array.strides, "version": 3}
        self.__array_interface__ = {"shape": array.shape, "typestr": kind, **where}
        self._owner = array.owner


def _is_packed(shape: tuple[int, ...], strides: tuple[int, ...] | None, step: int) -> bool:
    """True if the array is contiguous in C order. Strides have the unit of step."""
    if strides is None or 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


@functools.lru_cache(maxsize=None)
def name_of(dtype: numpy.dtype) -> str:
    """The name of a type, which takes NumPy microseconds to make."""
    if not dtype.isnative:
        raise TypeError(f"elements are in the byte order of another machine: {dtype.str}")
    return dtype.name


_first_byte = ctypes.c_char.from_buffer


def address_of(array: numpy.ndarray) -> int:
    """The address of a contiguous, writable array of a type that can be reduced."""
    # The buffer protocol takes a third of the time of NumPy's attributes.
    return ctypes.addressof(_first_byte(array)) if array.size else 0


def _from_numpy(array: numpy.ndarray, owner: Any) -> Array:
    name, flags = name_of(array.dtype), array.flags
    if flags.carray and _types.is_known(name):
        return Array(owner, address_of(array), name, array.shape, True, True, False)
    address, strides = array.__array_interface__["data"][0], None if flags.c_contiguous else array.strides
    return Array(owner, address, name, array.shape, flags.c_contiguous, flags.writeable, False, strides)


def _from_cuda(interface: dict[str, Any], owner: Any) -> Array:
    shape, kind = tuple(interface["shape"]), numpy.dtype(interface["typestr"])
    packed = _is_packed(shape, interface.get("strides"), kind.itemsize)
    address, read_only = interface["data"]
    return Array(owner, address or 0, kind.name, shape, packed, not read_only, True)


def _from_dlpack(tensor: Any) -> Array:
    owner, address, name, shape, strides, device = _dlpack.describe(tensor)
    if _is_packed(shape, strides, 1) or not _types.is_known(name):
        return Array(owner, address, name, shape, _is_packed(shape, strides, 1), True, device)
    size = _types.item_size(name)
    return Array(owner, address, name, shape, False, True, device, tuple(size * step for step in strides))


def view(data: Any) -> Array:
    """Describe an array without a copy: of NumPy, CuPy, PyTorch or any library with __cuda_array_interface__
    or DLPack, or an object with the buffer protocol. A sequence of numbers is copied. Device memory must be
    ready on the stream that calls are ordered against; the stream in __cuda_array_interface__ is not waited
    for.

    Raises:
        TypeError: data is none of these, or is a masked array.
    """
    if type(data) is numpy.ndarray:
        return _from_numpy(data, data)
    if isinstance(data, Array):
        return data
    if isinstance(data, numpy.ma.MaskedArray):
        raise TypeError("the array has a mask, which would be lost; filled() makes one without")
    if isinstance(data, numpy.ndarray):
        return _from_numpy(data, data)
    # PyTorch exports the memory of a lazily negated view, which has the opposite signs.
    if getattr(data, "is_neg", bool)():
        raise TypeError("the tensor is negated when it is read; resolve_neg() makes one that can be passed")
    interface = getattr(data, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_cuda(interface, data)
    if hasattr(data, "__dlpack__"):
        return _from_dlpack(data)
    if hasattr(data, "tocoo"):
        raise TypeError(
            f"{type(data).__name__} is a sparse matrix, which only allreduce() and reduce_scatter() take; "
            "other functions take its coordinates, or the array of toarray()"
        )
    if isinstance(data, (list, tuple)):
        array = numpy.asarray(data)
        if array.dtype == object:
            raise TypeError("a sequence must hold numbers")
        return _from_numpy(array, array)
    try:
        array = numpy.asarray(memoryview(data))
    except TypeError:
        raise TypeError(
            f"{type(data).__name__} is no array: it has neither the buffer protocol nor DLPack"
        ) from None
    return _from_numpy(array, data)


def rows(array: Array, row: Any) -> int:
    """Number of elements of an array, when an element is a row of `row` numbers.

    Raises:
        TypeError, ValueError: row is not a positive integer that divides the size.
    """
    length = _types.to_integer(row, "row", ctypes.c_int).value
    if length < 1 or array.size % length != 0:
        raise ValueError(f"{array.size} numbers do not make rows of {row}")
    return array.size // length


def writable_array(data: Any, strided: bool = False, name: str = "out") -> Array:
    """Describe an array for output, which may be strided if that is wanted and it is in host memory.

    Raises:
        TypeError: data is not an array, or is a sequence.
        ValueError: the array is read-only or not contiguous.
    """
    if isinstance(data, (list, tuple)):
        raise TypeError(f"{name} must be an array, not a {type(data).__name__}")
    array = view(data)
    if not array.writable:
        raise ValueError(f"{name} is read-only")
    if not array.contiguous and (array.device or not strided):
        raise ValueError(f"{name} is not contiguous")
    return array


def refuse_overlap(**named: Array) -> None:
    """Raise ValueError if two of the arrays share memory."""
    for (name, one), (other_name, other) in itertools.combinations(named.items(), 2):
        if one.overlaps(other):
            raise ValueError(f"{name} and {other_name} overlap in memory")


def stored_type(name: str) -> str:
    """The NumPy type that stores a type: uint16 for bfloat16, which NumPy lacks."""
    return "uint16" if name == "bfloat16" else name


@functools.lru_cache(maxsize=None)
def _stored_dtype(name: str) -> numpy.dtype:
    _types.refuse_unknown(name)
    return numpy.dtype(stored_type(name))


def empty(shape: tuple[int, ...], name: str) -> numpy.ndarray:
    """A new NumPy array for elements of a type."""
    return numpy.empty(shape, _stored_dtype(name))


def new_on_device_of(array: Array, shape: tuple[int, ...], name: str) -> Any:
    """A new array on the device of another: NumPy's on the host, else one of the other array's library.

    Raises:
        TypeError: that library has no known way to create an array.
    """
    owner = array.owner
    if not array.device:
        return empty(shape, name)
    if hasattr(owner, "new_empty"):  # PyTorch, whose types are attributes of its module
        return owner.new_empty(shape, dtype=getattr(sys.modules["torch"], name))
    if hasattr(owner, "__array_function__"):
        return numpy.empty_like(owner, dtype=name, shape=shape)
    raise TypeError(f"out is needed: {type(owner).__name__} does not tell how to make an array on its device")


def new_like(array: Array) -> Any:
    """A new array of the same device, shape and type."""
    return new_on_device_of(array, array.shape, array.type)


class Keeper:
    """Lives as long as the arrays over a result's memory, and keeps the result alive."""

    __slots__ = "result", "__weakref__"

    def __init__(self, result: Any) -> None:
        self.result = result


class _HostView(numpy.ndarray):
    """Part of a result's host memory. It is the base of the arrays that users have."""

    __slots__ = ("keeper",)


class _DeviceView:
    """Part of a result's memory on a device."""

    def __init__(self, keeper: Keeper, address: int, name: str, shape: tuple[int, ...]) -> None:
        where = {"shape": shape, "data": (address, True), "version": 3}
        self.__cuda_array_interface__ = {"typestr": _stored_dtype(name).str, **where}
        self.keeper = keeper
        self._address, self._name, self._shape = address, name, shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.cuda_device(self._address)

    def __dlpack__(self, *, copy: bool | None = None, **unused: Any) -> Any:
        """The memory itself, ready on any stream. Read-only, which DLPack cannot express."""
        if copy:
            raise BufferError("a result is not copied for DLPack")
        return _dlpack.export(self, self._address, self._name, self._shape, self.__dlpack_device__())


_memory_of = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)
_PYBUF_READ, _PYBUF_WRITE = 0x100, 0x200


def memory(address: int, size: int, writable: bool) -> memoryview:
    """Bytes of the library's memory, valid only as long as the library keeps them."""
    return _memory_of(address, size, _PYBUF_WRITE if writable else _PYBUF_READ)


def view_memory(keeper: Keeper, address: int, name: str, shape: tuple[int, ...], device: bool) -> Any:
    """A read-only array over a result's memory, which holds the keeper.

    On a device the array is an object with __cuda_array_interface__, where bfloat16 shows as uint16, and
    DLPack.
    """
    if device:
        return _DeviceView(keeper, address or ctypes.addressof(_empty_memory), name, shape)
    dtype = _stored_dtype(name)
    size = math.prod(shape) * dtype.itemsize
    view = _HostView(shape, dtype, _memory_of(address, size, _PYBUF_READ) if size else _empty_bytes)
    view.keeper = keeper
    return view.view(numpy.ndarray)


_empty_memory = ctypes.c_double()
_empty_bytes = memoryview(b"")


class OutputArray:
    """The output of a call on arrays. One that is not contiguous gets a copy of `target` at the end."""

    output: Any
    target: Any
    source: Any
    type: str
    _wanted: Any

    def check_type(self, out: Any) -> None:
        """Raise TypeError if the caller's output has another type than the array."""
        made = stored_type(self.type) if out is None else self.type
        if self.target.type != made:
            raise TypeError(f"out holds {self.target.type} and the array {self.type}")

    def finish(self) -> Any:
        """The output, when the call is complete."""
        if not self._wanted.contiguous:
            self._wanted.elements()[...] = self.target.elements().reshape(self._wanted.shape)
        return self.output
