# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of coordinates: the indices and values that are present."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy

from . import _arrays, _hints, _mpi, _types
from ._flight import Flight, Handle
from ._library import library


class Elements:
    """Indices and values of one rank. What is wrong with them is kept until all ranks can be told."""

    def __init__(self, indices: Any, values: Any) -> None:
        self.values = _arrays.view(values)
        if isinstance(indices, (list, tuple)) and not indices:
            indices = numpy.empty(0, "int64")
        self.indices = _arrays.view(indices)
        self.nnz = self.indices.size
        self.row_shape = self.values.shape[1:]
        self.row = math.prod(self.row_shape)
        self.wrong = self._find_wrong()

    def _find_wrong(self) -> str:
        if len(self.indices.shape) != 1:
            return f"indices have {len(self.indices.shape)} dimensions, not 1"
        if not self.values.shape or self.values.shape[0] != self.nnz:
            return f"there are {self.nnz} indices, and values of shape {self.values.shape}"
        if self.row < 1:
            return f"values of shape {self.values.shape} have rows of no numbers"
        return ""

    @property
    def pointers(self) -> tuple[Any, ...]:
        """What the functions of C take: indices, values, nnz; an nnz that all ranks refuse where something is
        wrong."""
        nnz = -1 if self.wrong else self.nnz
        return self.indices.pointer, self.values.pointer, ctypes.c_longlong(nnz)

    def judge(self, code: int) -> int:
        """The code of the call, unless this rank knows better why it failed: then it raises ValueError."""
        if self.wrong:
            raise ValueError(self.wrong)
        return code


class Result:
    """The outcome of a sparse allreduce: the union of all ranks' elements. The same bits on all ranks.

    Attributes:
        count: elements of the vector.
        nnz: elements that are present.
        indices: their indices, ascending, of shape (nnz,) and the type that the call was given.
        values: their values, of shape (nnz,), or (nnz, ...) where elements are rows, in the same order.

    The two arrays are read-only looks at the library's memory, which stays while any of them does.
    """

    def __init__(self, count: int, elements: Elements) -> None:
        self.count = count
        self._index_type, self._value_type = elements.indices.type, elements.values.type
        self._row_shape = elements.row_shape
        self._device = elements.values.device
        self._lent: weakref.WeakSet[Any] = weakref.WeakSet()
        self.handle = ctypes.c_void_p()

    def look(self) -> tuple[int, int, int]:
        """The number of elements, and the addresses of their indices and values."""
        nnz, indices, values = ctypes.c_longlong(), ctypes.c_void_p(), ctypes.c_void_p()
        outputs = ctypes.byref(nnz), ctypes.byref(indices), ctypes.byref(values)
        _mpi.check(library.MPIX_Sparse_result_get(self.handle, *outputs))
        return nnz.value, indices.value or 0, values.value or 0

    @property
    def nnz(self) -> int:
        return self.look()[0]

    @property
    def indices(self) -> Any:
        nnz, indices, _ = self.look()
        return self._lend(indices, self._index_type, (nnz,))

    @property
    def values(self) -> Any:
        nnz, _, values = self.look()
        return self._lend(values, self._value_type, (nnz, *self._row_shape))

    def _lend(self, address: int, name: str, shape: tuple[int, ...]) -> Any:
        array, life = _arrays.lend(self, address, name, shape, self._device)
        self._lent.add(life)
        return array

    def dense(self, out: Any = None) -> Any:
        """Write the result as a dense vector, with zeros where nothing is present. Not collective.

        Args:
            out: an array of count elements of the type of the values, or None for a new one of NumPy.

        Returns:
            out, or a new array of shape (count,) or (count, ...).

        Raises:
            TypeError, ValueError: out is of another type or size.
        """
        shape = (self.count, *self._row_shape)
        if out is None:
            out = _arrays.empty(shape, self._value_type)
            target = _arrays.view(out)
        else:
            target = _arrays.target(out)
            if target.type != self._value_type:
                raise TypeError(f"out holds {target.type} and the result {self._value_type}")
        if target.size != math.prod(shape):
            raise ValueError(f"out has {target.size} numbers, and {math.prod(shape)} are needed")
        _mpi.check(library.MPIX_Sparse_result_dense(self.handle, target.pointer))
        return out

    @property
    def is_lent(self) -> bool:
        """Whether an array looks at the result's memory."""
        return len(self._lent) > 0

    def refuse_lent(self) -> None:
        """Raise BufferError while an array looks at the result's memory."""
        if self.is_lent:
            raise BufferError("the indices or values of this result are still in use")

    def free(self) -> None:
        """Give the memory back now, and not when the result is dropped. Not collective.

        Raises:
            BufferError: the indices or values are still in use.
        """
        self.refuse_lent()
        _mpi.check(library.MPIX_Sparse_result_free(ctypes.byref(self.handle)))

    def __len__(self) -> int:
        return self.nnz

    def __repr__(self) -> str:
        nnz = self.nnz if self.handle else 0
        return f"<mpix_sparse.Result: {nnz} of {self.count} elements>"

    def __del__(self) -> None:
        if self.handle and _mpi.is_initialized():
            library.MPIX_Sparse_result_free(ctypes.byref(self.handle))


def outcome_of(elements: Elements, count: int, reuse: Result | None) -> Result:
    """A result to be filled: a new one, or the memory of one that nobody looks at.

    Raises:
        TypeError: `reuse` is no result.
        BufferError: the indices or values of `reuse` are still in use.
    """
    if reuse is not None and not isinstance(reuse, Result):
        raise TypeError(f"reuse must be a Result, not {type(reuse).__name__}")
    made = Result(count, elements)
    if reuse is not None:
        reuse.refuse_lent()
        made.handle, reuse.handle = reuse.handle, made.handle
    return made


class _Coordinates:
    """The arguments of a COO call, looked at."""

    def __init__(
        self, indices: Any, values: Any, count: int, op: str, comm: Any, reuse: Result | None
    ) -> None:
        self.elements = Elements(indices, values)
        name = self.elements.values.type
        self.comm = _mpi.communicator(comm)
        _hints.require(name, self.comm)
        self.types = index_type(self.elements.indices.type), _types.datatype(name, max(self.elements.row, 1))
        self.count, self.op = _types.whole(count, "count"), _types.operation(op)
        self.result = outcome_of(self.elements, count, reuse)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the functions of C begin with."""
        indextype, datatype = self.types
        pointers, result = self.elements.pointers, ctypes.byref(self.result.handle)
        return *pointers, indextype, self.count, datatype, self.op, self.comm, result


def index_type(name: str) -> Any:
    """The MPI datatype of indices; the library tells all ranks where it is none."""
    return _types.datatype(name) if _types.known(name) else _mpi.constant("DATATYPE_NULL")


def allreduce_coo(
    indices: Any, values: Any, count: int, op: str = "sum", *, comm: Any = None, reuse: Result | None = None
) -> Result:
    """Reduce elements given by coordinates over all ranks. Collective over comm; blocks.

    An absent element contributes nothing: the result holds the union of all ranks' indices. Elements that are
    present with the value zero are kept. Indices may come in any order, and several times.

    Args:
        indices: of shape (nnz,), in [0, count), of type int32, int64, uint32 or uint64. nnz may differ
            between ranks and be 0; the type may not.
        values: of shape (nnz,), or (nnz, ...) where an element is a row; the type and row the same on all
            ranks: float32, float64, int8 to int64, uint8 to uint64, bool, or 16-bit floats under the hint
            element.
        count: elements of the whole vector, equal on all ranks.
        op: sum, max, min or prod; for integers also land, band, lor, bor, lxor or bxor, for bool land, lor or
            lxor alone.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        reuse: a result that is no longer needed, whose memory is used again; it is empty afterwards.

    Returns:
        The result.

    Raises:
        TypeError: an argument is no array, or of a type that cannot be reduced. Only this rank learns of it.
        ValueError: indices and values do not go together; the other ranks get an Error. Or count does not fit
            64 bits; only this rank learns of that.
        BufferError: the arrays of `reuse` are still in use. Only this rank learns of it.
        Error: the library's sentence about what is wrong, on any rank, and all ranks get it.
    """
    call = _Coordinates(indices, values, count, op, comm, reuse)
    _mpi.check(call.elements.judge(library.MPIX_Sparse_allreduce_coo(*call.arguments)))
    return call.result


def iallreduce_coo(
    indices: Any, values: Any, count: int, op: str = "sum", *, comm: Any = None, reuse: Result | None = None
) -> Handle:
    """Start allreduce_coo() and return a handle, whose wait() gives the result. Collective over comm.

    Calls on one communicator must be started in the same order on all ranks. Arguments and errors are those
    of allreduce_coo(); what is wrong with them, but for their types, comes out of wait().
    """
    call = _Coordinates(indices, values, count, op, comm, reuse)
    flight = Flight(call, lambda: call.result, call.elements.wrong)
    return flight.begin(library.MPIX_Isparse_allreduce_coo(*call.arguments, ctypes.byref(flight.request)))
