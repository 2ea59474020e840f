# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of dense arrays that hold mostly zeros."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _arrays, _hints, _mpi, _scipy, _types
from ._flight import Flight, Handle
from ._library import library


class Dense:
    """The arguments of a dense call, looked at, and what it returns."""

    def __init__(self, array: Any, op: str, comm: Any, out: Any, row: int) -> None:
        self.source = _arrays.view(array)
        self.outcome = _arrays.like(self.source) if out is None else out
        self.target = _arrays.target(self.outcome)
        self.type, self.rows = self.source.type, _arrays.rows(self.source, row)
        self._check(out)
        self.comm = _mpi.communicator(comm)
        self.datatype, self.op = _types.datatype(self.type, row), _types.operation(op, self.type)
        self.in_place = self.source.size > 0 and self.target.covers(self.source)
        if not self.in_place and out is not None:
            _arrays.refuse_overlap(array=self.source, out=self.target)

    def _check(self, out: Any) -> None:
        made = _arrays.stored_type(self.type) if out is None else self.type
        if self.target.type != made:
            raise TypeError(f"out holds {self.target.type} and the array {self.type}")
        if self.target.size != self.source.size:
            raise ValueError(f"out has {self.target.size} numbers and the array {self.source.size}")
        if not self.source.contiguous:
            raise ValueError("the array is not contiguous")

    @property
    def buffers(self) -> tuple[Any, ...]:
        """What the functions of C begin with: sendbuf, recvbuf, count, datatype, op, comm."""
        sendbuf = _mpi.IN_PLACE if self.in_place else self.source.pointer
        count = ctypes.c_longlong(self.rows)
        return sendbuf, self.target.pointer, count, self.datatype, self.op, self.comm


def allreduce(array: Any, op: str = "sum", *, comm: Any = None, out: Any = None, row: int = 1) -> Any:
    """Reduce an array over all ranks. Collective over comm; blocks.

    All ranks receive the same bits. Numbers whose bits are all zero are left out of the messages; they still
    take part in max, min and prod as zeros. What cannot be sped up goes to MPI_Allreduce.

    Args:
        array: of any shape, the same size and type on all ranks, contiguous: NumPy, anything with the buffer
            protocol, __cuda_array_interface__ or DLPack; or a matrix or array of scipy.sparse, whose shape
            has to be the same too: an error tells of other numbers of elements only, and 4 x 6 and 6 x 4
            would be added along their rows. On a device it must be ready on the default stream, or on the one
            that set_info(stream=...) names: that of __cuda_array_interface__ is not waited for.
        op: sum, max, min, prod, land, band, lor, bor, lxor or bxor; for scipy.sparse one of the first four,
            for bool land, lor or lxor, for complex numbers sum or prod.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        out: an array of the same size and type that shares no memory with `array`, or `array` itself to work
            in place. None: a new array of the same shape, of NumPy or, on a device, of the
            array's own library. None for scipy.sparse.
        row: how many consecutive numbers are one element, which is present if any of them is not zero: the
            width of an embedding table, say. The same on all ranks.

    Returns:
        out, or what was made in its place; for scipy.sparse a new one of the same format and shape.

    Raises:
        TypeError, ValueError: an argument is wrong. Only this rank learns of it.
        Error: the library's sentence about what went wrong, on any rank.
    """
    if _scipy.is_sparse(array):
        if out is not None or row != 1:
            raise ValueError("out and row are not for scipy.sparse")
        return _scipy.allreduce(array, op, comm)
    call = Dense(array, op, comm, out, row)
    _hints.require(call.type, call.comm)
    _mpi.check(library.MPIX_Sparse_allreduce(*call.buffers))
    return call.outcome


def iallreduce(array: Any, op: str = "sum", *, comm: Any = None, out: Any = None, row: int = 1) -> Handle:
    """Start allreduce() and return a handle; wait() gives what allreduce() returns. Collective over comm.

    Calls on one communicator must be started in the same order on all ranks. Not for scipy.sparse. Arguments
    and errors are those of allreduce(); what the library finds wrong comes out of wait().
    """
    call = Dense(array, op, comm, out, row)
    _hints.require(call.type, call.comm)
    flight = Flight(call, lambda: call.outcome)
    return flight.begin(library.MPIX_Isparse_allreduce(*call.buffers, ctypes.byref(flight.request)))
