# SPDX-License-Identifier: BSD-3-Clause
"""Broadcasts: what changed between two versions of an array, and the elements of a sparse vector."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _arrays, _coo, _hints, _mpi, _problems, _refusal, _types
from ._collective import collective
from ._library import library

_HALVES = ("float16", "bfloat16")


def _bits(name: str) -> str:
    """The type that numbers travel as: those of 16 bits as integers, since bits are copied and compared."""
    return "uint16" if name in _HALVES else name


def _root(root: Any) -> Any:
    return _types.to_integer(root, "root", ctypes.c_int)


def _view_new(new: Any, root: int, handle: Any) -> _arrays.Array:
    """View the new version, which must be writable on ranks other than the root."""
    return _arrays.view(new) if _mpi.rank(handle) == root else _arrays.writable_array(new, name="new")


def _delta_arguments(old: Any, new: Any, root: int, comm: Any) -> tuple[Any, ...]:
    """The checked arguments of the C function."""
    handle = _hints.communicator(comm)
    if new is None and _mpi.rank(handle) == root:
        raise ValueError(f"the root, rank {root}, has no new version: it calls bcast_delta(old, new)")
    before = _arrays.view(old) if new is not None else _arrays.writable_array(old, name="old")
    after = before if new is None else _view_new(new, root, handle)
    if after.type != before.type or after.size != before.size:
        given, wanted = (f"{array.size} numbers of {array.type}" for array in (after, before))
        raise TypeError(f"new has {given}, and old {wanted}")
    if not before.contiguous or not after.contiguous:
        raise ValueError("the array is not contiguous")
    old_pointer, count = _mpi.IN_PLACE if new is None else before.pointer, ctypes.c_longlong(before.size)
    return old_pointer, after.pointer, count, _types.datatype(_bits(before.type)), _root(root), handle


@collective(_refusal.refuse_call)
def bcast_delta(old: Any, new: Any = None, *, root: int = 0, comm: Any = None) -> Any:
    """Broadcast a new version of an array to ranks that have its old version. Collective over comm; blocks.

    Only numbers whose bits changed are sent. The use case are weights of a model, of which a training step
    changes a few percent, on ranks that serve the model.

    Args:
        old: the old version, equal on all ranks: NumPy, a tensor of PyTorch, or another array in host memory,
            contiguous.
        new: on the root the new version, which is read only. On other ranks an array that becomes the new
            version, or None: then `old` does.
        root: the rank that has the new version; the same on all ranks.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.

    Returns:
        The array with the new version: `new`, or `old` if `new` is None.

    Raises:
        TypeError, ValueError: the arrays differ in type or size, or the root has no new version; the other
            ranks get an Error.
        Error: an argument is wrong, on all ranks; or the old version of this rank is not that of the root.
    """
    call = _refusal.prepare(_refusal.refuse_call, comm, _delta_arguments, old, new, root, comm)
    _problems.check(library.MPIX_Sparse_bcast_delta(*call), "", call[-1])
    return old if new is None else new


def _coo_arguments(
    indices: Any, values: Any, count: int, root: int, comm: Any, reuse: _coo.Result | None
) -> tuple[_coo.Elements, _coo.Result, tuple[Any, ...]]:
    """The elements, the result, and the first arguments of the C function."""
    elements, handle = _coo.elements_of(indices, values), _hints.communicator(comm)
    indextype = _coo.index_type(elements.index_type)
    datatype = _types.datatype(_bits(elements.type), max(elements.row, 1))
    how = indextype, _types.to_integer(count, "count"), datatype, _root(root), handle
    return elements, _coo.new_result(elements, count, reuse), (*elements.pointers, *how)


@collective(_refusal.refuse_call)
def bcast_coo(
    indices: Any,
    values: Any,
    count: int,
    *,
    root: int = 0,
    comm: Any = None,
    reuse: _coo.Result | None = None,
) -> _coo.Result:
    """Broadcast the elements of a sparse vector. Collective over comm; blocks.

    Args:
        indices: on the root the indices of its elements, in any order; of equal ones the last counts. On
            other ranks an array of the index type wanted, such as numpy.empty(0, "int64").
        values: on the root the values, of shape (nnz,), or (nnz, ...) if elements are rows. On other ranks an
            array of as many rows as `indices` has elements, of the root's type and shape of rows.
        count: length of the vector; the same on all ranks.
        root: the rank that has the elements; the same on all ranks.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        reuse: a result to overwrite, whose memory is reused.

    Returns:
        The elements of the root, indices ascending.

    Raises:
        TypeError, ValueError, BufferError: as in allreduce_coo().
        Error: an argument is wrong, on all ranks.
    """
    given = indices, values, count, root, comm, reuse
    elements, result, call = _refusal.prepare(_refusal.refuse_call, comm, _coo_arguments, *given)
    elements.check(library.MPIX_Sparse_bcast_coo(*call, ctypes.byref(result.handle)), call[-1])
    return result
