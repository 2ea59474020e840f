# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of dense arrays that hold mostly zeros."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy

from . import _arrays, _hints, _mpi, _problems, _refusal, _scipy, _types
from ._collective import collective
from ._pending import PendingCall, Handle
from ._library import library


class DenseArguments(_arrays.OutputArray):
    """The checked arguments of a dense call, and its output array. Host arrays that are not contiguous are
    copied; the result is copied to `out` at the end."""

    def __init__(self, array: Any, op: str, comm: Any, out: Any, row: int) -> None:
        self._given = _arrays.view(array)
        self.source = self._given.packed()
        self.output = _arrays.new_like(self.source) if out is None else out
        self._wanted = _arrays.writable_array(self.output, strided=True)
        in_copy = not self._given.contiguous and self._wanted.is_same_memory(self._given)
        self.target = self.source if in_copy else self._wanted.packed()
        self.type, self.rows = self.source.type, _arrays.rows(self.source, row)
        self._check(out)
        _mpi.communicator(comm)  # initialises MPI, which a datatype of rows needs
        self.datatype, self.op = _types.datatype(self.type, row), _types.operation(op, self.type)
        self.in_place = self.source.size > 0 and self.target.is_same_memory(self.source)
        if not self.in_place and out is not None:
            _arrays.refuse_overlap(array=self.source, out=self.target)
        self.comm = _hints.communicator(comm)

    def _check(self, out: Any) -> None:
        self.check_type(out)
        if self.target.size != self.source.size:
            raise ValueError(f"out has {self.target.size} numbers and the array {self.source.size}")
        if not self.source.contiguous:
            raise ValueError("the array is not contiguous")

    def copy_again(self) -> None:
        """Copy the array again if it is not contiguous, for the next call of a plan."""
        if self.source is not self._given:
            self.source.elements()[...] = self._given.elements()

    @property
    def buffers(self) -> tuple[Any, ...]:
        """The first arguments of the C functions: sendbuf, recvbuf, count, datatype, op, comm."""
        sendbuf = _mpi.IN_PLACE if self.in_place else self.source.pointer
        count = ctypes.c_longlong(self.rows)
        return sendbuf, self.target.pointer, count, self.datatype, self.op, self.comm


class DirectArguments:
    """The arguments of a call on contiguous arrays in host memory, whose types and sizes were compared.

    Args:
        source, target: addresses.
        count, size: elements, and bytes, of each array.
        kinds: the MPI datatype and op.
        keep: objects that own the memory.
        output: what the call returns.
    """

    __slots__ = "buffers", "keep", "output"

    def __init__(
        self, source: int, target: int, count: int, size: int, kinds: Any, comm: Any, keep: Any, output: Any
    ) -> None:
        if source == target and count:
            first = _mpi.IN_PLACE
        elif abs(source - target) < size:
            raise ValueError("array and out overlap in memory")
        else:
            first = ctypes.c_void_p(source)
        self.buffers = first, ctypes.c_void_p(target), ctypes.c_longlong(count), *kinds, comm
        self.keep, self.output = keep, output

    def finish(self) -> Any:
        """The output, when the call is complete."""
        return self.output


@functools.lru_cache(maxsize=None)
def _direct_kinds(dtype: numpy.dtype, op: str) -> Any:
    """The MPI datatype and op for a type of NumPy; None if the type needs a hint, or an argument is wrong."""
    if not dtype.isnative or dtype.kind not in "fiucb" or dtype.name in _types.HALVES:
        return None
    try:
        return _types.datatype(dtype.name), _types.operation(op, dtype.name)
    except (TypeError, ValueError):
        return None


def _arguments(array: Any, op: str, comm: Any, out: Any, row: int) -> DirectArguments | DenseArguments:
    """The checked arguments of a call."""
    plain = numpy.ndarray
    is_direct = type(array) is plain and array.flags.carray and type(row) is int and row == 1
    if is_direct and (out is None or type(out) is plain and out.flags.carray):
        dtype, size, kinds = array.dtype, array.size, _direct_kinds(array.dtype, op)
        target = numpy.empty(array.shape, dtype) if out is None else out
        if kinds and target.dtype == dtype and target.size == size:
            addresses = _arrays.address_of(array), _arrays.address_of(target)
            handle = _hints.communicator(comm)
            return DirectArguments(*addresses, size, array.nbytes, kinds, handle, array, target)
    call = DenseArguments(array, op, comm, out, row)
    _hints.require(call.type, call.comm)
    return call


@collective(_refusal.refuse_call)
def allreduce(array: Any, op: str = "sum", *, comm: Any = None, out: Any = None, row: int = 1) -> Any:
    """Reduce an array over all ranks. Collective over comm; blocks.

    All ranks receive the same bits. Elements whose bits are all zero are not sent, but count as zeros in max,
    min and prod. Calls that the library cannot speed up are passed to MPI_Allreduce after a check that the
    arguments are equal on all ranks; see set_info() to pass them on without it.

    Args:
        array: of any shape, the same size and type on all ranks: NumPy, or anything with the buffer protocol,
            __cuda_array_interface__ or DLPack; or a matrix or array of scipy.sparse, of the same shape on all
            ranks. Only the number of elements is compared, and of matrices that of rows: arrays of 4 x 6 and
            6 x 4 would be added along their rows.
            An array in host memory that is not contiguous is copied, and so is its result. On a device the
            array must be contiguous, and be ready on the default stream, or on the stream of
            set_info(stream=...); the stream in __cuda_array_interface__ is not waited for.
        op: sum, max, min, prod, land, band, lor, bor, lxor or bxor; floats and scipy.sparse have the
            first four, bool land, lor and lxor, complex numbers sum and prod.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        out: an array of the same size and type that shares no memory with `array`, or `array` itself for a
            reduction in place. None creates an array of the same shape: NumPy's or, on a device, the array
            library's. Must be None for scipy.sparse.
        row: number of consecutive numbers that form one element, such as the width of an embedding table. An
            element is present if any of its numbers is not zero. The same on all ranks.

    Returns:
        out, or the new array; for scipy.sparse a new matrix or array of the same format and shape.

    Raises:
        TypeError, ValueError: an argument is wrong; the other ranks get an Error, unless `comm` is wrong.
        Error: the call failed, on any rank; the text is the C library's.
    """
    if _scipy.is_sparse(array):
        _refusal.prepare(_refusal.refuse_call, comm, _scipy.refuse_others, out, row)
        return _scipy.allreduce(array, op, comm)
    call = _refusal.prepare(_refusal.refuse_call, comm, _arguments, array, op, comm, out, row)
    _problems.check(library.MPIX_Sparse_allreduce(*call.buffers), "", call.buffers[-1])
    return call.finish()


@collective(_refusal.refuse_start)
def iallreduce(array: Any, op: str = "sum", *, comm: Any = None, out: Any = None, row: int = 1) -> Handle:
    """Start allreduce() and return a handle; wait() returns what allreduce() returns. Collective over comm.

    Calls on one communicator must be started in the same order on all ranks. Not for scipy.sparse. Arguments
    and errors are those of allreduce(); wait() raises the errors that the C library finds.
    """
    call = _refusal.prepare(_refusal.refuse_start, comm, _arguments, array, op, comm, out, row)
    return start(call)


def start(call: DirectArguments | DenseArguments) -> Handle:
    """Start a call with checked arguments."""
    pending = PendingCall(call, call.finish)
    return pending.begin(library.MPIX_Isparse_allreduce(*call.buffers, ctypes.byref(pending.request)))
