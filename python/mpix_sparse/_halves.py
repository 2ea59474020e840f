# SPDX-License-Identifier: BSD-3-Clause
"""The halves of an allreduce of coordinates: reduce_scatter and allgather."""

from __future__ import annotations

from typing import Any

from . import _mpi, _types
from ._coo import CooArguments, Elements, Result
from ._library import library


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
    length_of_block = _types.to_integer(block, "block")
    call = CooArguments(Elements(indices, values), count, op, comm, reuse)
    *pointers, indextype, length, datatype, c_op, c_comm, result = call.arguments
    code = library.MPIX_Sparse_reduce_scatter_coo(
        *pointers, indextype, length, length_of_block, datatype, c_op, c_comm, result
    )
    _mpi.check(call.elements.check_code(code))
    return call.result


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
    elements = Elements(indices, values)
    any_op = "lor" if elements.type == "bool" else "sum"
    call = CooArguments(elements, count, any_op, comm, reuse)
    *pointers, indextype, length, datatype, _, c_comm, result = call.arguments
    code = library.MPIX_Sparse_allgather_coo(*pointers, indextype, length, datatype, c_comm, result)
    _mpi.check(call.elements.check_code(code))
    return call.result
