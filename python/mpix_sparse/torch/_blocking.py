# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces of tensors in host memory by the blocking functions of the C library. They make no object for a
call in flight, and so take a part of the time. They match nonblocking ones of other ranks, but make no
progress on other calls of this rank. The functions return None if they cannot make a call, or if an argument
is wrong; no call has started then. Nonblocking calls on sparse tensors share the arguments and results."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, NamedTuple

import torch

from .. import _arrays, _mpi, _pending, _types
from .._library import library
from . import _deferred
from ._checked import CheckedCall
from ._labels import dense_label, describe_dense, describe_sparse, shape_label, sparse_label
from ._numbering import Numbering, numbering, rows_of
from ._tensors import (
    OPS,
    Average,
    Op,
    copy_result,
    detached,
    is_plain,
    name_of,
    scale_,
)
from ._world import World

_STRIDED = torch.strided
_KINDS = 1024  # of calls on sparse tensors that are remembered
_SPARE_BYTES = 1 << 16  # limit for a result whose memory is kept


def _is_idle() -> bool:
    """True if no call of this rank is in flight, which a blocking call might keep from its end."""
    return not (_pending.pending_calls or _deferred.waiting)


@functools.lru_cache(maxsize=None)
def _dense_kind(dtype: torch.dtype, op: str) -> tuple[str, Any, Any, Any] | None:
    """The name of a type, the MPI datatype and op, and the label. None if ranks agree before a call, as for
    16-bit floats, or if the op is not for the type."""
    name, chosen = name_of(dtype), OPS[op]
    if name in _types.HALVES or chosen is Average and not (dtype.is_floating_point or dtype.is_complex):
        return None
    try:
        return name, _types.datatype(name), _types.operation(chosen.reduction, name), dense_label(chosen)
    except (TypeError, ValueError):
        return None


def reduce_dense(
    tensor: torch.Tensor, in_place: bool, op: Op, ranks: World, scales: tuple[float, float]
) -> torch.Tensor | None:
    """Reduce a dense tensor in place, or into a new one. Collective; blocks."""
    if tensor.layout is not _STRIDED:
        return None
    kind = _dense_kind(tensor.dtype, op.name)
    if kind is None or not (ranks.may_block and is_plain(tensor)):
        return None
    with ranks.lock:
        return _block_dense(tensor, in_place, op, ranks, scales, kind) if _is_idle() else None


def _block_dense(
    tensor: torch.Tensor, in_place: bool, op: Op, ranks: World, scales: tuple[float, float], kind: Any
) -> torch.Tensor:
    name, datatype, operation, label = kind
    buffer, comm = detached(tensor) if in_place else detached(tensor).clone(), ranks.plain
    if scales[0] != 1:
        scale_(buffer, scales[0])
    ranks.last, count = comm, buffer.numel()
    if buffer.dim() > 1:
        label = shape_label(op, buffer.shape)
    if label is not None and ranks.checks:
        _mpi.check(library.MPIX_Sparse_comm_set_label(comm, label))
    where = _mpi.IN_PLACE, ctypes.c_void_p(buffer.data_ptr()), ctypes.c_longlong(count)
    number = CheckedCall.count(ranks)
    code = library.MPIX_Sparse_allreduce(*where, datatype, operation, comm)
    if code != 0:
        text = describe_dense, op.name, name, count, buffer.shape
        CheckedCall(ranks, text, buffer, number=number).end(code).wait()
    divisor = op.divisor(ranks.size)
    if divisor != 1 or scales[1] != 1:
        scale_(buffer, scales[1], divisor)
    return tensor if in_place else buffer


class SparseKind(NamedTuple):
    """What is equal in all calls on sparse tensors with a shape, a type and an op.

    Attributes:
        types: the arguments indextype, count, datatype and op of the C library.
        text, label: as for CheckedCall, and of the call of the C library.
        numbers: of the elements along the sparse dimensions of the shape.
        row: the dense dimensions.
        bytes: of the index and the values of an element.
    """

    types: tuple[Any, Any, Any, Any]
    text: Any
    label: Any
    numbers: Numbering
    row: torch.Size
    bytes: int


@functools.lru_cache(maxsize=_KINDS)
def sparse_kind(dtype: torch.dtype, op: str, shape: torch.Size, sparse_dim: int) -> SparseKind | None:
    """What calls with these arguments have in common; None if they cannot be made at once."""
    name, chosen = name_of(dtype), OPS[op]
    extents, row = shape[:sparse_dim], shape[sparse_dim:]
    if not sparse_dim or 0 in row or _dense_kind(dtype, op) is None:
        return None
    try:
        count = _types.to_integer(extents.numel(), "count")
        types = _types.datatype(name, math.prod(row)), _types.operation(chosen.reduction, name)
    except (TypeError, ValueError):
        return None
    text, label = (describe_sparse, op, name, shape, sparse_dim), sparse_label(chosen, shape, sparse_dim)
    size = _types.item_size("int64") + math.prod(row) * _types.item_size(name)
    return SparseKind((_types.datatype("int64"), count, *types), text, label, numbering(extents), row, size)


_mpi.add_finalize_hook(sparse_kind.cache_clear)  # MPI forgets the datatypes of rows


class SpareResult:
    """A result of the C library, and the places of its contents. Objects of ctypes take time to make."""

    __slots__ = "_handle", "pointer", "_nnz", "_indices", "_values", "_places"

    def __init__(self) -> None:
        self._handle, self._nnz = ctypes.c_void_p(), ctypes.c_longlong()
        self._indices, self._values = ctypes.c_void_p(), ctypes.c_void_p()
        self.pointer = ctypes.byref(self._handle)
        self._places = tuple(map(ctypes.byref, (self._nnz, self._indices, self._values)))

    def contents(self) -> tuple[int, int, int]:
        """The number of elements, and the addresses of indices and values."""
        code = library.MPIX_Sparse_result_get(self._handle, *self._places)
        if code != 0:
            _mpi.check(code)
        return self._nnz.value, self._indices.value or 0, self._values.value or 0

    def free(self) -> None:
        """Free the memory. The object can be used again."""
        library.MPIX_Sparse_result_free(self.pointer)

    def give_back(self, size: int) -> None:
        """Keep the memory for the next call if this is little, else free it; size is the number of bytes."""
        _spare.append(self) if 0 < size <= _SPARE_BYTES else self.free()

    def __del__(self) -> None:
        if self._handle and not _mpi.is_finalized():
            self.free()


_spare: list[SpareResult] = []  # small results, whose memory the next calls take


def _free_spare() -> None:
    while _spare:
        _spare.pop().free()


_mpi.add_finalize_hook(_free_spare)


def take_result() -> SpareResult:
    """A result for a call to fill, which may have memory of an earlier one."""
    try:
        return _spare.pop()
    except IndexError:
        return SpareResult()


def sparse_arguments(
    tensor: torch.Tensor, sparse_dim: int, factor: float, kind: SparseKind
) -> tuple[tuple[Any, Any, Any], Any] | None:
    """The arguments indices, values and nnz of the C library, of values that are multiplied by a factor, and
    what owns their memory. None if they need a copy, or an index is outside the tensor."""
    indices, values = tensor._indices(), tensor._values()
    if not is_plain(values) or sparse_dim == 1 and not indices.is_contiguous():
        return None
    if factor != 1:
        values = scale_(values.clone(), factor)
    if sparse_dim == 1:
        where = indices.data_ptr()
    else:
        rows = rows_of(indices)
        if kind.numbers.find_outside(rows):
            return None
        indices = kind.numbers.ravel(rows)
        where = _arrays.address_of(indices)
    pointers = ctypes.c_void_p(where), ctypes.c_void_p(values.data_ptr()), ctypes.c_longlong(tensor._nnz())
    return pointers, (indices, values)


def reduce_sparse(
    tensor: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float]
) -> torch.Tensor | None:
    """Reduce a sparse COO tensor into a new one. Collective; blocks."""
    sparse_dim = tensor.sparse_dim()
    kind = sparse_kind(tensor.dtype, op.name, tensor.shape, sparse_dim)
    if kind is None:
        return None
    with ranks.lock:
        return _block_sparse(tensor, sparse_dim, op, ranks, scales, kind) if _is_idle() else None


def _block_sparse(
    tensor: torch.Tensor,
    sparse_dim: int,
    op: Op,
    ranks: World,
    scales: tuple[float, float],
    kind: SparseKind,
) -> torch.Tensor | None:
    tensor = detached(tensor)
    prepared = sparse_arguments(tensor, sparse_dim, scales[0], kind)
    if prepared is None:
        return None
    pointers, keep = prepared
    ranks.last = comm = ranks.plain
    if kind.label is not None and ranks.checks:
        _mpi.check(library.MPIX_Sparse_comm_set_label(comm, kind.label))
    result, size = take_result(), 0
    number = CheckedCall.count(ranks)
    try:
        code = library.MPIX_Sparse_allreduce_coo(*pointers, *kind.types, comm, result.pointer)
        if code != 0:
            CheckedCall(ranks, kind.text, keep, number=number).end(code).wait()
        contents = result.contents()
        size = contents[0] * kind.bytes
        return copy_result(tensor, kind.numbers, kind.row, contents, op.divisor(ranks.size), scales[1])
    finally:
        result.give_back(size)
