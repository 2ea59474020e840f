# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of the elements of sparse tensors: the C library takes flat indices. NumPy converts few indices in
less time than PyTorch."""

from __future__ import annotations

import ctypes
import functools
import operator

import numpy
import torch

from .._arrays import memory

INT64, _UINT64 = numpy.dtype("int64"), numpy.dtype("uint64")
_DOT_ELEMENTS = 1 << 10  # limit for indices that one product converts, rather than operations on rows
_COPIED_BYTES = 1 << 16  # limit for flat indices that are copied first, which takes less time than a view


def rows_of(indices: torch.Tensor) -> numpy.ndarray:
    """Indices in host memory as unsigned numbers, among which negative ones are above all extents."""
    return indices.numpy().view(_UINT64)


class Numbering:
    """Numbers of elements along sparse dimensions.

    Args:
        extents: the sparse dimensions of a tensor.
    """

    __slots__ = "extents", "is_flat", "_axes", "_multipliers", "_divisors"

    def __init__(self, extents: torch.Size) -> None:
        self.extents, self.is_flat, self._axes = extents, len(extents) == 1, range(len(extents))
        self._multipliers = numpy.array([extents[i + 1 :].numel() for i in self._axes], _UINT64)
        # NumPy takes arrays of one number in less time than numbers.
        self._divisors = [(i, numpy.array([extents[i]], INT64)) for i in self._axes[:0:-1]]

    def find_outside(self, rows: numpy.ndarray) -> str:
        """The error of an index that is outside the tensor; empty if there is none. The C library finds it
        only among flat indices, in which it may be another element.

        Args:
            rows: the result of rows_of().
        """
        if not rows.size:
            return ""
        largest = rows.argmax(1).tolist()  # in a quarter of the time of max(1)
        if not any(map(operator.ge, map(rows.item, self._axes, largest), self.extents)):
            return ""
        dimension = next(i for i in self._axes if rows.item(i, largest[i]) >= self.extents[i])
        index = rows.view(INT64).item(dimension, largest[dimension])
        where = f"the sparse dimensions {tuple(self.extents)} of the tensor"
        return f"index {index} of dimension {dimension} is outside {where}"

    def ravel(self, rows: numpy.ndarray) -> numpy.ndarray:
        """Convert the result of rows_of() to flat indices, of the same type."""
        if rows.size <= _DOT_ELEMENTS:
            return self._multipliers.dot(rows)
        flat = rows[0]
        for i in self._axes[1:]:
            flat = flat * _UINT64.type(self.extents[i])
            flat += rows[i]
        return flat

    def unravel(self, address: int, nnz: int) -> torch.Tensor:
        """Convert flat indices in the library's memory to indices in each dimension."""
        rows, size = numpy.empty((len(self.extents), nnz), INT64), 8 * nnz
        if nnz:
            is_small = size <= _COPIED_BYTES
            where = ctypes.string_at(address, size) if is_small else memory(address, size, writable=False)
            flat, quotient = numpy.frombuffer(where, INT64), rows[0]
            for i, divisor in self._divisors:
                numpy.divmod(flat, divisor, quotient, rows[i])
                flat = quotient
        return torch.from_numpy(rows)


@functools.lru_cache(maxsize=1024)
def numbering(extents: torch.Size) -> Numbering:
    """The Numbering of sparse dimensions."""
    return Numbering(extents)
