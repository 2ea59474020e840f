# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and arrays of scipy.sparse. Elements are numbered along the rows."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from typing import Any

import numpy

from . import _coo, _halves, _hints, _mpi, _refusal
from ._error import Error
from ._library import library

_LABELS = 1 << 31
_LABEL = "the label of the call"  # in the C library's sentence
_FLAGS = "_has_canonical_format", "_has_sorted_indices"
_UNSIGNED = {numpy.dtype("int32"): numpy.dtype("uint32"), numpy.dtype("int64"): numpy.dtype("uint64")}
_ATTRIBUTES = {"_shape", "maxprint", "data", "indices", "indptr", *_FLAGS}  # of SciPy's CSR matrices


def is_sparse(array: Any) -> bool:
    """True for a matrix or an array of scipy.sparse. SciPy need not be installed."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(array)


def refuse_others(out: Any, row: int) -> None:
    """Raise ValueError for arguments that are not for matrices."""
    if out is not None or row != 1:
        raise ValueError("out and row are not for scipy.sparse")


def _coordinates(elements: Any) -> tuple[Any, ...]:
    """The coordinates of a COO matrix, or of an array of any number of dimensions, by dimension."""
    coordinates = getattr(elements, "coords", None)
    return (elements.row, elements.col) if coordinates is None else coordinates


def allreduce(matrix: Any, op: str, comm: Any) -> Any:
    """Reduce a matrix or an array over all ranks into a new one of the same format."""
    shape, count = matrix.shape, math.prod(matrix.shape)
    kind = numpy.int32 if count <= numpy.iinfo(numpy.int32).max else numpy.int64
    if matrix.format == "csr" and len(shape) == 2:
        return _allreduce_rows(matrix, kind, op, comm)
    flat, elements = _refusal.prepare(_refusal.refuse_call, comm, _flatten, matrix, kind)
    result = _reduce(flat, elements.data, shape, op, comm)
    found = _unravel(result.indices, shape)
    return type(matrix)(type(elements)((result.values.copy(), found), shape=shape))


def _reduce(indices: Any, values: Any, shape: tuple[int, ...], op: str, comm: Any) -> _coo.Result:
    """Reduce the elements of a matrix. Ranks compare the number of elements and, by a label, that of rows,
    which are all of the shape in two dimensions. The label is no message of its own."""
    if len(shape) > 1:
        label = ctypes.c_int(shape[0] % _LABELS)
        _mpi.check(library.MPIX_Sparse_comm_set_label(_hints.communicator(comm), label))
    try:
        return _coo.allreduce_coo(indices, values, math.prod(shape), op, comm=comm)
    except Error as error:
        if _LABEL not in str(error):
            raise
        raise Error(str(error).replace(_LABEL, "the number of rows"), error.code) from None


def _refuse_outside(axis: Any, extent: int) -> None:
    """Raise an exception for an index outside a dimension, which would be an element of another row."""
    unsigned = _UNSIGNED.get(axis.dtype)
    if unsigned is None:
        raise TypeError(f"the indices of the matrix are of type {axis.dtype}; they must be int32 or int64")
    if not len(axis):
        return
    index = axis.item(axis.view(unsigned).argmax())  # a negative one is the largest of the unsigned ones
    if not 0 <= index < extent:
        raise ValueError(f"the matrix has index {index} in a dimension of {extent}")


def _flatten(matrix: Any, kind: Any) -> tuple[Any, Any]:
    """Flat indices, and the matrix in the format COO. The C library checks the first dimension."""
    elements = matrix.tocoo()
    first, *others = _coordinates(elements)
    flat = first.astype(kind)
    for extent, axis in zip(matrix.shape[1:], others):
        _refuse_outside(axis, extent)
        flat = flat * kind(extent) + axis.astype(kind)
    return flat, elements


def reduce_scatter(matrix: Any, op: str, comm: Any) -> Any:
    """Reduce a matrix over all ranks into a new one, of the same format, of the rows of this rank. Each rank
    owns one block of elements.

    Raises:
        ValueError: the ranks cannot share the rows; the other ranks get an Error.
    """
    shape, count, ranks = matrix.shape, math.prod(matrix.shape), _mpi.size(_hints.communicator(comm))
    kind = numpy.int32 if count <= numpy.iinfo(numpy.int32).max else numpy.int64
    flat, elements = _refusal.prepare(_refusal.refuse_call, comm, _flatten, matrix, kind)
    part, shared = (shape[0] // ranks, *shape[1:]), shape[0] % ranks == 0
    size = max(math.prod(part), 1)
    try:  # all ranks refuse a block of 0
        result = _halves.reduce_scatter_coo(flat, elements.data, count, size * shared, op, comm=comm)
    except Error:
        if shared:
            raise
        raise ValueError(f"the matrix has {shape[0]} rows, which {ranks} ranks cannot share") from None
    found = _unravel(result.indices - kind(_mpi.rank(comm) * size), part)
    return type(matrix)(type(elements)((result.values.copy(), found), shape=part))


def _flatten_rows(matrix: Any, first: Any) -> tuple[Any, Any]:
    """Flat indices and the values of a CSR matrix.

    Args:
        first: the flat index of the first element of each row.
    """
    starts, columns, values = matrix.indptr, matrix.indices, matrix.data
    nnz = starts.item(-1)
    if starts.shape != first.shape or starts.item(0) != 0 or nnz > len(columns) or nnz > len(values):
        raise ValueError("indptr of the matrix does not fit its shape, indices and data")
    columns = columns[:nnz]
    _refuse_outside(columns, matrix.shape[1])
    try:
        flat = first[:-1].repeat(starts[1:] - starts[:-1])
    except ValueError:
        raise ValueError("indptr of the matrix descends") from None
    flat += columns
    return flat, values[:nnz]


def _allreduce_rows(matrix: Any, kind: Any, op: str, comm: Any) -> Any:
    """Reduce a CSR matrix without SciPy's conversions, which take most of the time of a small call."""
    height, width = matrix.shape[0], max(matrix.shape[1], 1)
    first = numpy.arange(0, (height + 1) * width, width, kind)
    flat, values = _refusal.prepare(_refusal.refuse_call, comm, _flatten_rows, matrix, first)
    result = _reduce(flat, values, matrix.shape, op, comm)
    flat, index = result.indices, matrix.indices.dtype
    if len(flat) > _largest(index):
        index = numpy.int64
    columns, starts = flat % kind(width), flat.searchsorted(first)
    structure = columns.astype(index, copy=False), starts.astype(index, copy=False)
    return _with(matrix, result.values.copy(), *structure)


@functools.lru_cache(maxsize=None)
def _largest(dtype: numpy.dtype) -> int:
    return numpy.iinfo(dtype).max


def _with(matrix: Any, values: Any, columns: Any, starts: Any) -> Any:
    """A CSR matrix of the class and shape of another, with sorted columns."""
    kind = type(matrix)
    if kind.__module__.startswith("scipy.sparse") and set(vars(matrix)) <= _ATTRIBUTES:
        # The constructor takes longer than the reduction.
        made = kind.__new__(kind)
        vars(made).update(vars(matrix))
        made.data, made.indices, made.indptr = values, columns, starts
    else:
        made = kind((values, columns, starts), shape=matrix.shape)
    made.has_canonical_format = True
    return made


def _unravel(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Convert flat indices to coordinates, by dimension."""
    coordinates = []
    for extent in reversed(shape[1:]):
        indices, axis = numpy.divmod(indices, indices.dtype.type(max(extent, 1)))
        coordinates.append(axis)
    return indices.copy(), *reversed(coordinates)
