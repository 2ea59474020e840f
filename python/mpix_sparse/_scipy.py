# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and arrays of scipy.sparse. Elements are numbered along the rows."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy

from . import _coo


def is_sparse(array: Any) -> bool:
    """True for a matrix or an array of scipy.sparse. SciPy need not be installed."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(array)


def _coordinates(elements: Any) -> tuple[Any, ...]:
    """The coordinates of a COO matrix, or of an array of any number of dimensions, by dimension."""
    coordinates = getattr(elements, "coords", None)
    return (elements.row, elements.col) if coordinates is None else coordinates


def allreduce(matrix: Any, op: str, comm: Any) -> Any:
    """Reduce a matrix or an array over all ranks into a new one of the same format. Ranks compare the number
    of elements, not the shape, which would need another message."""
    shape, count = matrix.shape, math.prod(matrix.shape)
    kind = numpy.int32 if count <= numpy.iinfo(numpy.int32).max else numpy.int64
    elements = matrix.tocoo()
    first, *others = (axis.astype(kind) for axis in _coordinates(elements))
    for extent, axis in zip(shape[1:], others):
        first = first * kind(extent) + axis
    result = _coo.allreduce_coo(first, elements.data, count, op, comm=comm)
    found = _unravel(result.indices, shape)
    return type(matrix)(type(elements)((result.values.copy(), found), shape=shape))


def _unravel(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Convert flat indices to coordinates, by dimension."""
    coordinates = []
    for extent in reversed(shape[1:]):
        indices, axis = numpy.divmod(indices, indices.dtype.type(max(extent, 1)))
        coordinates.append(axis)
    return indices.copy(), *reversed(coordinates)
