# SPDX-License-Identifier: BSD-3-Clause
"""The tensors and objects of all ranks, together on each."""

from __future__ import annotations

import pickle
from typing import Any

import torch

from . import _collectives
from ._allreduce import Work
from ._tensors import refuse_other, type_of
from ._world import world


def allgather_async(tensor: torch.Tensor, name: str | None = None) -> Work:
    """Start allgather(). Collective; waits until all ranks have said how long their tensors are."""
    refuse_other(tensor)
    comm, wrong = world().plain, ""
    if tensor.is_sparse or tensor.dim() == 0:
        wrong = "a tensor that is sparse, or has no dimension, cannot be joined to others along its first"
    rows = f"{type_of(tensor)} of {tuple(tensor.shape[1:])}"
    lengths = _collectives.agree_on_rows(0 if wrong else len(tensor), rows, wrong, comm)
    return _collectives.allgather_rows(tensor.detach(), lengths, comm)


def allgather(tensor: torch.Tensor, name: str | None = None) -> torch.Tensor:
    """The tensors of all ranks, joined along their first dimension in the order of ranks. Collective; blocks.

    Args:
        tensor: dense; of one type on all ranks, and of one shape but for the first dimension.
        name: for the reader; calls are matched by their order.

    Returns:
        A new tensor.

    Raises:
        TypeError: there is no tensor, or one of a type that MPI lacks. Only this rank learns of it.
        ValueError: tensors do not go together, or one has no first dimension. All ranks learn of it.
    """
    return allgather_async(tensor, name).wait()


def allgather_object(value: Any, name: str | None = None) -> list[Any]:
    """The objects of all ranks, which must pickle, in the order of ranks. Collective; blocks."""
    data = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8)
    comm = world().plain
    lengths = [length for (length,) in _collectives.gather_numbers([len(data)], comm)]
    pieces = _collectives.allgather_rows(data, lengths, comm).wait().split(lengths)
    return [pickle.loads(piece.numpy().tobytes()) for piece in pieces]


def barrier() -> None:
    """Wait for all ranks. Collective; blocks."""
    _collectives.barrier(world().plain).wait()
