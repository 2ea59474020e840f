# SPDX-License-Identifier: BSD-3-Clause
"""The tensors and objects of all ranks, together on each."""

from __future__ import annotations

import pickle
from typing import Any

import torch

from . import _collectives
from ._allreduce import Work, allreduce
from ._tensors import refuse_other, type_of
from ._world import refuse_process_set, world


def _start(tensor: torch.Tensor) -> tuple[Work, list[int]]:
    """Start to gather; returns also how many rows each rank has."""
    refuse_other(tensor)
    comm, wrong = world().plain, ""
    if tensor.is_sparse or tensor.dim() == 0:
        wrong = "a tensor that is sparse, or has no dimension, cannot be joined to others along its first"
    rows = f"{type_of(tensor)} of {tuple(tensor.shape[1:])}"
    lengths = _collectives.agree_on_rows(0 if wrong else len(tensor), rows, wrong, comm)
    return _collectives.allgather_rows(tensor.detach(), lengths, comm), lengths


def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: Any = None) -> Work:
    """Start allgather(). Collective; waits until all ranks have said how long their tensors are."""
    refuse_process_set(process_set)
    return _start(tensor)[0]


class _Allgather(torch.autograd.Function):
    """As in Horovod, the gradient of this rank's rows is the mean of what ranks have for them."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        work, lengths = _start(tensor)
        first = sum(lengths[: world().rank])
        ctx.mine = slice(first, first + len(tensor))
        return work.wait()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return allreduce(gradient)[ctx.mine]


def allgather(tensor: torch.Tensor, name: str | None = None, process_set: Any = None) -> torch.Tensor:
    """The tensors of all ranks, joined along their first dimension in the order of ranks. Collective; blocks.

    Gradients flow through the call: each rank's is the mean over ranks of those of its rows. So backward() is
    collective too.

    Args:
        tensor: dense; of one type on all ranks, and of one shape but for the first dimension.
        name: for the reader; calls are matched by their order.
        process_set: as of allreduce().

    Returns:
        A new tensor.

    Raises:
        TypeError: there is no tensor, or one of a type that MPI lacks. Only this rank learns of it.
        ValueError: tensors do not go together, or one has no first dimension. All ranks learn of it.
    """
    refuse_process_set(process_set)
    return _Allgather.apply(tensor)


def allgather_object(obj: Any, name: str | None = None, process_set: Any = None) -> list[Any]:
    """The objects of all ranks, in the order of ranks. Collective; blocks.

    Raises:
        ValueError: one cannot be pickled. All ranks learn of it.
    """
    refuse_process_set(process_set)
    data, wrong = _collectives.pickled(obj)
    comm = world().plain
    lengths = _collectives.agree_on_rows(len(data), "bytes of an object", wrong, comm)
    tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    pieces = _collectives.allgather_rows(tensor, lengths, comm).wait().split(lengths)
    return [pickle.loads(piece.numpy().tobytes()) for piece in pieces]


def barrier(process_set: Any = None) -> None:
    """Wait for all ranks. Collective; blocks."""
    refuse_process_set(process_set)
    _collectives.barrier(world().plain).wait()
