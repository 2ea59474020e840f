# SPDX-License-Identifier: BSD-3-Clause
"""Vectors, rows and matrices of scipy.sparse: their elements are numbered along the rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from . import _coo


def is_sparse(array: Any) -> bool:
    """Whether it is a matrix or an array of scipy.sparse, which need not be there."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(array)


def allreduce(matrix: Any, op: str, comm: Any) -> Any:
    """Reduce a matrix over all ranks; a new one of the same format. Ranks compare numbers of elements, not
    shapes: to do that too would take a message."""
    rows, columns = matrix.shape
    count = rows * columns
    kind = numpy.int32 if count <= numpy.iinfo(numpy.int32).max else numpy.int64
    elements = matrix.tocoo()
    indices = elements.row.astype(kind) * kind(columns) + elements.col.astype(kind)
    result = _coo.allreduce_coo(indices, numpy.ascontiguousarray(elements.data), count, op, comm=comm)
    place = numpy.divmod(result.indices, kind(max(columns, 1)))
    return type(matrix)(type(elements)((result.values.copy(), place), shape=matrix.shape))
