# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and arrays of scipy.sparse. Elements are numbered along the rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from . import _coo


def is_sparse(array: Any) -> bool:
    """True for a matrix or an array of scipy.sparse. SciPy need not be installed."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(array)


def allreduce(matrix: Any, op: str, comm: Any) -> Any:
    """Reduce a matrix over all ranks into a new one of the same format. Ranks compare the number of elements,
    not the shape, which would need another message."""
    rows, columns = matrix.shape
    count = rows * columns
    kind = numpy.int32 if count <= numpy.iinfo(numpy.int32).max else numpy.int64
    elements = matrix.tocoo()
    indices = elements.row.astype(kind) * kind(columns) + elements.col.astype(kind)
    result = _coo.allreduce_coo(indices, numpy.ascontiguousarray(elements.data), count, op, comm=comm)
    coordinates = numpy.divmod(result.indices, kind(max(columns, 1)))
    return type(matrix)(type(elements)((result.values.copy(), coordinates), shape=matrix.shape))
