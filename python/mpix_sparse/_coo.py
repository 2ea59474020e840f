# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of coordinates: indices and values of the elements that are present."""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from typing import Any, Callable

import numpy

from . import _arrays, _hints, _mpi, _problems, _refusal, _types
from ._collective import collective
from ._pending import PendingCall, Handle
from ._library import library


class Elements:
    """Indices and values of one rank. A problem with them is kept until the collective call, which fails on
    all ranks.

    Attributes:
        index_type, type: names of the types.
        row_shape, row: the shape, and the number, of the numbers of an element.
        device: True for values on a device.
        keep: objects that own the memory.
    """

    __slots__ = "index_type", "type", "nnz", "row_shape", "row", "device", "keep", "problem", "_addresses"

    def __init__(self, indices: Any, values: Any) -> None:
        theirs = _arrays.view(values).packed()
        if isinstance(indices, (list, tuple)) and not indices:
            indices = numpy.empty(0, "int64")
        where = _arrays.view(indices).packed()
        self.index_type, self.type, self.device = where.type, theirs.type, theirs.device
        self.nnz, self.row_shape = where.size, theirs.shape[1:]
        self.row = math.prod(self.row_shape) if self.row_shape else 1
        self.keep, self._addresses = (where, theirs), (where.pointer, theirs.pointer)
        self.problem = _find_problem(where.shape, theirs.shape, self.row)

    @property
    def pointers(self) -> tuple[Any, ...]:
        """The C arguments indices, values, nnz. If there is a problem, all ranks refuse nnz."""
        return *self._addresses, ctypes.c_longlong(_problems.REFUSED_NUMBER if self.problem else self.nnz)

    def check(self, code: int, comm: Any) -> None:
        """Raise the exception of a blocking call that has failed: ValueError if the problem was this rank's,
        else Error."""
        if code != 0 or self.problem:
            _problems.check(code, self.problem, comm)


def _find_problem(where: tuple[int, ...], shape: tuple[int, ...], row: int) -> str:
    """The error in the shapes of indices and values; empty if there is none."""
    if len(where) != 1:
        return f"indices have {len(where)} dimensions, not 1"
    if shape == where:
        return ""
    if not shape or shape[0] != where[0]:
        return f"there are {where[0]} indices, and values of shape {shape}"
    if row < 1:
        return f"values of shape {shape} have rows of no numbers"
    return ""


class DirectElements(Elements):
    """Elements in contiguous host memory, whose shapes were compared.

    Args:
        indices, values: addresses.
        name: the type of the values.
        keep: objects that own the memory.
        index_type: the type of the indices.
    """

    __slots__ = ()

    def __init__(
        self,
        indices: int,
        values: int,
        nnz: int,
        name: str,
        row_shape: tuple[int, ...],
        keep: Any,
        index_type: str = "int64",
    ) -> None:
        self.index_type, self.type, self.device = index_type, name, False
        self.nnz, self.row_shape = nnz, row_shape
        self.row = math.prod(row_shape) if row_shape else 1
        self.keep, self._addresses = keep, (ctypes.c_void_p(indices), ctypes.c_void_p(values))
        self.problem = "" if self.row else _find_problem((nnz,), (nnz, *row_shape), self.row)


def elements_of(indices: Any, values: Any) -> Elements:
    """The elements of one rank, of arrays of any kind. Those of contiguous arrays of NumPy take half the
    time."""
    plain = numpy.ndarray
    if type(indices) is plain and type(values) is plain and indices.flags.carray and values.flags.carray:
        kinds, shape = (_arrays.name_of(values.dtype), _arrays.name_of(indices.dtype)), values.shape
        if indices.ndim == 1 and shape[:1] == indices.shape and all(map(_types.is_known, kinds)):
            where = _arrays.address_of(indices), _arrays.address_of(values), shape[0]
            return DirectElements(*where, kinds[0], shape[1:], (indices, values), kinds[1])
    return Elements(indices, values)


class Result:
    """The result of a sparse allreduce: the union of all ranks' elements. The same bits on all ranks.

    Attributes:
        count: elements of the vector.
        nnz: number of elements that are present.
        indices: indices of these elements, ascending, of shape (nnz,) and the type of the call's indices.
        values: values in the same order, of shape (nnz,), or (nnz, ...) if elements are rows.

    The two arrays are read-only views of the library's memory, which lives as long as they do.
    """

    def __init__(self, count: int, elements: Elements) -> None:
        self.count = count
        self._index_type, self._value_type = elements.index_type, elements.type
        self._row_shape, self._device = elements.row_shape, elements.device
        self._keeper: weakref.ref[_arrays.Keeper] | None = None
        self._contents: tuple[int, int, int] | None = None
        self.handle = ctypes.c_void_p()

    def contents(self) -> tuple[int, int, int]:
        """The number of elements, and the addresses of indices and values."""
        if self._contents is None:
            nnz, indices, values = ctypes.c_longlong(), ctypes.c_void_p(), ctypes.c_void_p()
            outputs = ctypes.byref(nnz), ctypes.byref(indices), ctypes.byref(values)
            _mpi.check(library.MPIX_Sparse_result_get(self.handle, *outputs))
            self._contents = nnz.value, indices.value or 0, values.value or 0
        return self._contents

    @property
    def nnz(self) -> int:
        return self.contents()[0]

    @property
    def indices(self) -> Any:
        nnz, indices, _ = self.contents()
        return self._make_view(indices, self._index_type, (nnz,))

    @property
    def values(self) -> Any:
        nnz, _, values = self.contents()
        return self._make_view(values, self._value_type, (nnz, *self._row_shape))

    def _make_view(self, address: int, name: str, shape: tuple[int, ...]) -> Any:
        keeper = self._keeper and self._keeper()
        if keeper is None:
            keeper = _arrays.Keeper(self)
            self._keeper = weakref.ref(keeper)
        return _arrays.view_memory(keeper, address, name, shape, self._device)

    def dense(self, out: Any = None) -> Any:
        """Write the result as a dense vector; absent elements become zeros. Not collective.

        Args:
            out: an array of count elements of the type of the values, or None for a new one of NumPy.

        Returns:
            out, or a new array of shape (count,) or (count, ...).

        Raises:
            TypeError, ValueError: out has another type or size.
        """
        shape = (self.count, *self._row_shape)
        if out is None:
            out = _arrays.empty(shape, self._value_type)
            array = _arrays.view(out)
        else:
            array = _arrays.writable_array(out, strided=True)
            if array.type != self._value_type:
                raise TypeError(f"out holds {array.type} and the result {self._value_type}")
        if array.size != math.prod(shape):
            raise ValueError(f"out has {array.size} numbers, and {math.prod(shape)} are needed")
        packed = array.packed()
        _mpi.check(library.MPIX_Sparse_result_dense(self.handle, packed.pointer))
        if packed is not array:
            array.elements()[...] = packed.elements()
        return out

    @property
    def is_viewed(self) -> bool:
        """True while an array views the result's memory."""
        return self._keeper is not None and self._keeper() is not None

    def refuse_viewed(self) -> None:
        """Raise BufferError while an array views the result's memory."""
        if self.is_viewed:
            raise BufferError("the indices or values of this result are still in use")

    def free(self) -> None:
        """Free the memory now instead of when the object is deleted. Not collective.

        Raises:
            BufferError: an array of indices or values is still in use.
        """
        self.refuse_viewed()
        self._contents = None
        _mpi.check(library.MPIX_Sparse_result_free(ctypes.byref(self.handle)))

    def __len__(self) -> int:
        return self.nnz

    def __repr__(self) -> str:
        nnz = self.nnz if self.handle else 0
        return f"<mpix_sparse.Result: {nnz} of {self.count} elements>"

    def __del__(self) -> None:
        if self.handle and not _mpi.is_finalized():
            library.MPIX_Sparse_result_free(ctypes.byref(self.handle))


def new_result(elements: Elements, count: int, reuse: Result | None) -> Result:
    """A new result for a call to fill, with the memory of `reuse` if that is given.

    Raises:
        TypeError: `reuse` is not a Result.
        BufferError: the indices or values of `reuse` are still in use.
    """
    if reuse is not None and not isinstance(reuse, Result):
        raise TypeError(f"reuse must be a Result, not {type(reuse).__name__}")
    made = Result(count, elements)
    if reuse is not None:
        reuse.refuse_viewed()
        reuse._contents = None
        made.handle, reuse.handle = reuse.handle, made.handle
    return made


class CooArguments:
    """The checked arguments of a COO call."""

    def __init__(self, elements: Elements, count: int, op: str, comm: Any, reuse: Result | None) -> None:
        self.elements, self.comm = elements, _hints.communicator(comm)
        _hints.require(elements.type, self.comm)
        kinds = _kinds(elements.index_type, elements.type, elements.row or 1, op)
        self.indextype, self.datatype, self.op, problem = kinds
        self.count = _types.to_integer(count, "count")
        elements.problem = elements.problem or problem
        self.result = new_result(elements, count, reuse)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first arguments of the C functions."""
        types = self.indextype, self.count, self.datatype, self.op
        return *self.elements.pointers, *types, self.comm, ctypes.byref(self.result.handle)


def _arguments(
    indices: Any, values: Any, count: int, op: str, comm: Any, reuse: Result | None
) -> CooArguments:
    """The checked arguments of a call."""
    return CooArguments(elements_of(indices, values), count, op, comm, reuse)


@functools.lru_cache(maxsize=None)
def _kinds(index_name: str, name: str, row: int, op: str) -> tuple[Any, Any, Any, str]:
    """The MPI datatypes of indices and values, the op, and the error if the op is not for the type.

    Raises:
        TypeError: no coordinates have these types.
    """
    if index_name == "bool":
        raise TypeError("indices are of type bool; they must be int32, int64, uint32 or uint64")
    if name.startswith("complex"):
        raise TypeError(f"values are of type {name}; complex numbers are reduced in dense arrays")
    return index_type(index_name), _types.datatype(name, row), *_types.operation_and_problem(op, name)


def index_type(name: str) -> Any:
    """The MPI datatype of indices; MPI_DATATYPE_NULL for an unknown type, which the C library refuses on all
    ranks."""
    return _types.datatype(name) if _types.is_known(name) else _mpi.constant("DATATYPE_NULL")


@collective(_refusal.refuse_call)
def allreduce_coo(
    indices: Any, values: Any, count: int, op: str = "sum", *, comm: Any = None, reuse: Result | None = None
) -> Result:
    """Reduce elements given by coordinates over all ranks. Collective over comm; blocks.

    An absent element contributes nothing: the result holds the union of all ranks' indices. Elements that are
    present with the value zero are kept. Indices may be unordered and may repeat.

    Args:
        indices: of shape (nnz,), in [0, count), of type int32, int64, uint32 or uint64. nnz may differ
            between ranks and be 0; the type may not.
        values: of shape (nnz,), or (nnz, ...) if an element is a row. Type and row shape are the same on all
            ranks. Types: float32, float64, int8 to int64, uint8 to uint64, bool, and 16-bit floats with the
            hint element.
        count: elements of the whole vector, equal on all ranks.
        op: sum, max, min or prod; for integers also land, band, lor, bor, lxor or bxor; for bool only land,
            lor or lxor.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        reuse: a result that is no longer needed, whose memory the new result takes; it is empty afterwards.

    Returns:
        The result.

    Raises:
        TypeError: an argument is not an array, or its type cannot be reduced.
        ValueError: indices and values do not match, or op is not defined for the values' type, or count does
            not fit in 64 bits.
        BufferError: the arrays of `reuse` are still in use. The other ranks get an Error of these three,
            unless `comm` is wrong.
        Error: arguments are wrong or differ between ranks, or the call failed; on all ranks.
    """
    call = _refusal.prepare(_refusal.refuse_call, comm, _arguments, indices, values, count, op, comm, reuse)
    call.elements.check(library.MPIX_Sparse_allreduce_coo(*call.arguments), call.comm)
    return call.result


@collective(_refusal.refuse_start)
def iallreduce_coo(
    indices: Any, values: Any, count: int, op: str = "sum", *, comm: Any = None, reuse: Result | None = None
) -> Handle:
    """Start allreduce_coo() and return a handle, whose wait() returns the result. Collective over comm.

    Calls on one communicator must be started in the same order on all ranks. Arguments and errors are those
    of allreduce_coo(); wait() raises all errors except those of types.
    """
    call = _refusal.prepare(_refusal.refuse_start, comm, _arguments, indices, values, count, op, comm, reuse)
    return start(call)


def start(call: CooArguments, make: Callable[..., PendingCall] = PendingCall) -> Handle:
    """Start a call with checked arguments. `make` makes it from what a PendingCall is made from."""
    pending = make(call, lambda: call.result, call.elements.problem)
    return pending.begin(library.MPIX_Isparse_allreduce_coo(*call.arguments, ctypes.byref(pending.request)))
