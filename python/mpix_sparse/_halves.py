# SPDX-License-Identifier: BSD-3-Clause
"""The halves of an allreduce: reduce_scatter, of dense arrays and of coordinates, and allgather."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

from . import _arrays, _hints, _mpi, _problems, _refusal, _scipy, _types
from ._collective import collective
from ._coo import CooArguments, elements_of, Result
from ._library import library
from ._pending import Handle, PendingCall


class _PartArguments(_arrays.OutputArray):
    """The checked arguments of a dense reduce_scatter, and its output array. An error in the arrays' sizes is
    kept until the call, which fails on all ranks."""

    def __init__(self, array: Any, op: str, comm: Any, out: Any, row: int) -> None:
        self.comm = _hints.communicator(comm)
        self._ranks = _mpi.size(self.comm)
        self.source = _arrays.view(array).packed()
        self.type, shape = self.source.type, self.source.shape
        _hints.require(self.type, self.comm)
        self.kinds = _types.datatype(self.type, row), _types.operation(op, self.type)
        self.problem = self._find_problem(shape, row)
        part = () if self.problem else (shape[0] // self._ranks, *shape[1:])
        self.output = _arrays.new_on_device_of(self.source, part, self.type) if out is None else out
        self._wanted = _arrays.writable_array(self.output, strided=True)
        self.target = self._wanted.packed()
        self._check(out)
        self.rows = _problems.REFUSED_NUMBER if self.problem else self.source.size // self._ranks // row

    def _find_problem(self, shape: tuple[int, ...], row: int) -> str:
        """The error in the shape of the array; empty if there is none."""
        if not shape or shape[0] % self._ranks:
            return f"the array has shape {shape}, whose first dimension {self._ranks} ranks cannot share"
        if not self.source.contiguous:
            return "the array is not contiguous"
        size = self.source.size // self._ranks
        return f"a part of {size} numbers does not make rows of {row}" if row < 1 or size % row else ""

    def _check(self, out: Any) -> None:
        self.check_type(out)
        size = self.source.size // self._ranks
        if not self.problem and self.target.size != size:
            self.problem = f"out has {self.target.size} numbers, and a part of the array {size}"
        if out is not None:
            _arrays.refuse_overlap(
                array=self.source, out=self._wanted if self._wanted.contiguous else self.target
            )

    @property
    def buffers(self) -> tuple[Any, ...]:
        """The arguments of the C function."""
        return self.source.pointer, self.target.pointer, ctypes.c_longlong(self.rows), *self.kinds, self.comm


@collective(_refusal.refuse_call)
def reduce_scatter(array: Any, op: str = "sum", *, comm: Any = None, out: Any = None, row: int = 1) -> Any:
    """Reduce an array over all ranks, and return the part of this rank. Collective over comm; blocks.

    The array's first dimension is divided into equal parts, in the order of ranks, as by
    MPI_Reduce_scatter_block. Elements whose bits are all zero are not sent, as in allreduce().

    Args:
        array: as for allreduce(). The number of ranks divides its first dimension. For a matrix of
            scipy.sparse, which has two dimensions, a part is a matrix of these rows.
        op, comm, row: as for allreduce(). A part is a whole number of rows.
        out: an array of the size of a part and of the same type, which shares no memory with `array`. None
            creates an array. Must be None for scipy.sparse.

    Returns:
        out, or a new array, whose first dimension is that of a part.

    Raises:
        ValueError: the ranks cannot share the first dimension, or out has another size; the other ranks get
            an Error.
        TypeError, ValueError: another argument is wrong; as for allreduce().
        Error: arguments differ between ranks, or the call failed; on all ranks.
    """
    if _scipy.is_sparse(array):
        _refusal.prepare(_refusal.refuse_call, comm, _scipy.refuse_others, out, row)
        return _scipy.reduce_scatter(array, op, comm)
    call = _refusal.prepare(_refusal.refuse_call, comm, _PartArguments, array, op, comm, out, row)
    code = library.MPIX_Sparse_reduce_scatter(*call.buffers)
    _problems.check(code, call.problem, call.comm)
    return call.finish()


@collective(_refusal.refuse_start)
def ireduce_scatter(
    array: Any, op: str = "sum", *, comm: Any = None, out: Any = None, row: int = 1
) -> Handle:
    """Start reduce_scatter() and return a handle; wait() returns what reduce_scatter() returns. Collective.

    Calls on one communicator must be started in the same order on all ranks. Not for scipy.sparse. Arguments
    and errors are those of reduce_scatter(); wait() raises the errors that the C library finds.
    """
    call = _refusal.prepare(_refusal.refuse_start, comm, _PartArguments, array, op, comm, out, row)
    pending = PendingCall(call, call.finish, call.problem)
    return pending.begin(library.MPIX_Isparse_reduce_scatter(*call.buffers, ctypes.byref(pending.request)))


def _scatter_arguments(
    indices: Any, values: Any, count: int, block: int, op: str, comm: Any, reuse: Result | None
) -> tuple[CooArguments, tuple[Any, ...]]:
    """The checked arguments, and those of the C function."""
    length_of_block = _types.to_integer(block, "block")
    call = CooArguments(elements_of(indices, values), count, op, comm, reuse)
    return call, _with_block(call, length_of_block)


def _with_block(call: CooArguments, block: Any) -> tuple[Any, ...]:
    """The arguments of the C function, of a call and its block."""
    *pointers, indextype, length, datatype, op, comm, result = call.arguments
    return *pointers, indextype, length, block, datatype, op, comm, result


def start_reduce_scatter(call: CooArguments, block: int, make: Callable[..., PendingCall]) -> Handle:
    """Start reduce_scatter_coo() with checked arguments. `make` makes it from what a PendingCall is made
    from."""
    arguments = _with_block(call, _types.to_integer(block, "block"))
    pending = make(call, lambda: call.result, call.elements.problem)
    request = ctypes.byref(pending.request)
    return pending.begin(library.MPIX_Isparse_reduce_scatter_coo(*arguments, request))


def _gather_arguments(
    indices: Any, values: Any, count: int, comm: Any, reuse: Result | None
) -> tuple[CooArguments, tuple[Any, ...]]:
    """The checked arguments, and those of the C function."""
    elements = elements_of(indices, values)
    any_op = "lor" if elements.type == "bool" else "sum"
    call = CooArguments(elements, count, any_op, comm, reuse)
    *pointers, indextype, length, datatype, _, c_comm, result = call.arguments
    return call, (*pointers, indextype, length, datatype, c_comm, result)


def _call(function: Any, call: CooArguments, arguments: tuple[Any, ...]) -> Result:
    call.elements.check(function(*arguments), call.comm)
    return call.result


def _start(function: Callable[..., int], call: CooArguments, arguments: tuple[Any, ...]) -> Handle:
    pending = PendingCall(call, lambda: call.result, call.elements.problem)
    return pending.begin(function(*arguments, ctypes.byref(pending.request)))


@collective(_refusal.refuse_call)
def reduce_scatter_coo(
    indices: Any,
    values: Any,
    count: int,
    block: int,
    op: str = "sum",
    *,
    comm: Any = None,
    reuse: Result | None = None,
) -> Result:
    """Reduce elements given by coordinates, and return those that this rank owns. Collective; blocks.

    The owner of element i is rank (i // block) % size: blocks are dealt out cyclically. Blocks of
    ceil(count / size) elements make one contiguous part for each rank.

    Args:
        indices, values, count, op, comm, reuse: as in allreduce_coo().
        block: elements of a block, at least 1, equal on all ranks.

    Returns:
        The elements that this rank owns; their indices are those of the whole vector.

    Raises:
        TypeError, ValueError, BufferError, Error: as in allreduce_coo().
    """
    given = indices, values, count, block, op, comm, reuse
    how = _refusal.prepare(_refusal.refuse_call, comm, _scatter_arguments, *given)
    return _call(library.MPIX_Sparse_reduce_scatter_coo, *how)


@collective(_refusal.refuse_start)
def ireduce_scatter_coo(
    indices: Any,
    values: Any,
    count: int,
    block: int,
    op: str = "sum",
    *,
    comm: Any = None,
    reuse: Result | None = None,
) -> Handle:
    """Start reduce_scatter_coo() and return a handle, whose wait() returns the result. Collective over comm.

    The rules of iallreduce_coo() apply.
    """
    given = indices, values, count, block, op, comm, reuse
    how = _refusal.prepare(_refusal.refuse_start, comm, _scatter_arguments, *given)
    return _start(library.MPIX_Isparse_reduce_scatter_coo, *how)


@collective(_refusal.refuse_call)
def allgather_coo(
    indices: Any, values: Any, count: int, *, comm: Any = None, reuse: Result | None = None
) -> Result:
    """Return the elements of all ranks, given by coordinates. Collective over comm; blocks.

    No index may occur twice, neither on one rank nor on two, as is certain of the results of
    reduce_scatter_coo().

    Args:
        indices, values, count, comm, reuse: as in allreduce_coo().

    Returns:
        The elements of all ranks, the same on all ranks, in ascending order of their indices.

    Raises:
        TypeError, ValueError, BufferError: as in allreduce_coo().
        Error: as in allreduce_coo(), or an index occurs twice; on all ranks.
    """
    given = indices, values, count, comm, reuse
    how = _refusal.prepare(_refusal.refuse_call, comm, _gather_arguments, *given)
    return _call(library.MPIX_Sparse_allgather_coo, *how)


@collective(_refusal.refuse_start)
def iallgather_coo(
    indices: Any, values: Any, count: int, *, comm: Any = None, reuse: Result | None = None
) -> Handle:
    """Start allgather_coo() and return a handle, whose wait() returns the result. Collective over comm.

    The rules of iallreduce_coo() apply.
    """
    given = indices, values, count, comm, reuse
    how = _refusal.prepare(_refusal.refuse_start, comm, _gather_arguments, *given)
    return _start(library.MPIX_Isparse_allgather_coo, *how)
