# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of coordinates: indices and values of the elements that are present."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy

from . import _arrays, _hints, _mpi, _types
from ._pending import PendingCall, Handle
from ._library import library


class Elements:
    """Indices and values of one rank. A problem with them is kept until the collective call, which fails on
    all ranks."""

    def __init__(self, indices: Any, values: Any) -> None:
        self.values = _arrays.view(values).packed()
        if isinstance(indices, (list, tuple)) and not indices:
            indices = numpy.empty(0, "int64")
        self.indices = _arrays.view(indices).packed()
        self.nnz = self.indices.size
        self.row_shape = self.values.shape[1:]
        self.row = math.prod(self.row_shape)
        self.problem = self._find_problem()

    def _find_problem(self) -> str:
        if len(self.indices.shape) != 1:
            return f"indices have {len(self.indices.shape)} dimensions, not 1"
        if not self.values.shape or self.values.shape[0] != self.nnz:
            return f"there are {self.nnz} indices, and values of shape {self.values.shape}"
        if self.row < 1:
            return f"values of shape {self.values.shape} have rows of no numbers"
        return ""

    @property
    def pointers(self) -> tuple[Any, ...]:
        """The C arguments indices, values, nnz. If there is a problem, nnz is -1, which all ranks refuse."""
        nnz = -1 if self.problem else self.nnz
        return self.indices.pointer, self.values.pointer, ctypes.c_longlong(nnz)

    def check_code(self, code: int) -> int:
        """Return the call's error code; raise ValueError if the problem was this rank's."""
        if self.problem:
            raise ValueError(self.problem)
        return code


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
        self._index_type, self._value_type = elements.indices.type, elements.values.type
        self._row_shape = elements.row_shape
        self._device = elements.values.device
        self._views: weakref.WeakSet[Any] = weakref.WeakSet()
        self.handle = ctypes.c_void_p()

    def contents(self) -> tuple[int, int, int]:
        """The number of elements, and the addresses of indices and values."""
        nnz, indices, values = ctypes.c_longlong(), ctypes.c_void_p(), ctypes.c_void_p()
        outputs = ctypes.byref(nnz), ctypes.byref(indices), ctypes.byref(values)
        _mpi.check(library.MPIX_Sparse_result_get(self.handle, *outputs))
        return nnz.value, indices.value or 0, values.value or 0

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
        array, memory_view = _arrays.view_memory(self, address, name, shape, self._device)
        self._views.add(memory_view)
        return array

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
        return len(self._views) > 0

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
        _mpi.check(library.MPIX_Sparse_result_free(ctypes.byref(self.handle)))

    def __len__(self) -> int:
        return self.nnz

    def __repr__(self) -> str:
        nnz = self.nnz if self.handle else 0
        return f"<mpix_sparse.Result: {nnz} of {self.count} elements>"

    def __del__(self) -> None:
        if self.handle and _mpi.is_initialized():
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
        made.handle, reuse.handle = reuse.handle, made.handle
    return made


class CooArguments:
    """The checked arguments of a COO call."""

    def __init__(
        self, indices: Any, values: Any, count: int, op: str, comm: Any, reuse: Result | None
    ) -> None:
        self.elements = Elements(indices, values)
        name = self.elements.values.type
        self.comm = _hints.communicator(comm)
        _hints.require(name, self.comm)
        self.types = index_type(self.elements.indices.type), _types.datatype(name, max(self.elements.row, 1))
        self.count = _types.to_integer(count, "count")
        self.op, problem = _types.operation_and_problem(op, name)
        self.elements.problem = self.elements.problem or problem
        self.result = new_result(self.elements, count, reuse)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first arguments of the C functions."""
        indextype, datatype = self.types
        pointers, result = self.elements.pointers, ctypes.byref(self.result.handle)
        return *pointers, indextype, self.count, datatype, self.op, self.comm, result


def index_type(name: str) -> Any:
    """The MPI datatype of indices; MPI_DATATYPE_NULL for an unknown type, which the C library refuses on all
    ranks."""
    return _types.datatype(name) if _types.is_known(name) else _mpi.constant("DATATYPE_NULL")


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
        TypeError: an argument is not an array, or its type cannot be reduced. Only on this rank.
        ValueError: indices and values do not match, or op is not defined for the values' type; the other
            ranks get an Error. Or count does not fit in 64 bits, only on this rank.
        BufferError: the arrays of `reuse` are still in use. Only on this rank.
        Error: arguments are wrong or differ between ranks, or the call failed; on all ranks.
    """
    call = CooArguments(indices, values, count, op, comm, reuse)
    _mpi.check(call.elements.check_code(library.MPIX_Sparse_allreduce_coo(*call.arguments)))
    return call.result


def iallreduce_coo(
    indices: Any, values: Any, count: int, op: str = "sum", *, comm: Any = None, reuse: Result | None = None
) -> Handle:
    """Start allreduce_coo() and return a handle, whose wait() returns the result. Collective over comm.

    Calls on one communicator must be started in the same order on all ranks. Arguments and errors are those
    of allreduce_coo(); wait() raises all errors except those of types.
    """
    return start(CooArguments(indices, values, count, op, comm, reuse))


def start(call: CooArguments) -> Handle:
    """Start a call with checked arguments."""
    pending = PendingCall(call, lambda: call.result, call.elements.problem)
    return pending.begin(library.MPIX_Isparse_allreduce_coo(*call.arguments, ctypes.byref(pending.request)))
