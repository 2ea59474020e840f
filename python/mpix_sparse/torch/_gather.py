# SPDX-License-Identifier: BSD-3-Clause
"""Allgather of tensors and objects, and a barrier."""

from __future__ import annotations

import pickle
from typing import Any

import torch

from . import _collectives
from ._allreduce import Work, allreduce
from ._tensors import refuse_other, type_of
from ._world import refuse_process_set, world


def _start(tensor: torch.Tensor) -> tuple[Work, list[int]]:
    """Start an allgather; returns also the number of rows of each rank."""
    refuse_other(tensor)
    comm, problem = world().plain, ""
    if tensor.is_sparse or tensor.dim() == 0:
        problem = "a tensor that is sparse, or has no dimension, cannot be joined to others along its first"
    rows = f"{type_of(tensor)} of {tuple(tensor.shape[1:])}"
    lengths = _collectives.agree_on_rows(0 if problem else len(tensor), rows, problem, comm)
    return _collectives.allgather_rows(tensor.detach(), lengths, comm), lengths


def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: Any = None) -> Work:
    """Start allgather(). Collective; blocks to exchange the tensors' lengths."""
    refuse_process_set(process_set)
    return _start(tensor)[0]


class _Allgather(torch.autograd.Function):
    """As in Horovod, the gradient of this rank's rows is the mean over ranks."""

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
    """Concatenate the tensors of all ranks along the first dimension, in rank order. Collective; blocks.

    Differentiable: the gradient of a rank's rows is the mean over ranks, so backward() is collective too.

    Args:
        tensor: dense; of the same type on all ranks, and of the same shape except for the first dimension.
        name: ignored; calls are matched by order.
        process_set: as for allreduce().

    Returns:
        A new tensor.

    Raises:
        TypeError: the argument is not a tensor, or MPI has no such type. Only on this rank.
        ValueError: shapes or types differ, or a tensor has no first dimension; on all ranks.
    """
    refuse_process_set(process_set)
    return _Allgather.apply(tensor)


def allgather_object(obj: Any, name: str | None = None, process_set: Any = None) -> list[Any]:
    """Gather the objects of all ranks, in rank order. Collective; blocks.

    Raises:
        ValueError: an object cannot be pickled; on all ranks.
    """
    refuse_process_set(process_set)
    data, problem = _collectives.pickled(obj)
    comm = world().plain
    lengths = _collectives.agree_on_rows(len(data), "bytes of an object", problem, comm)
    tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    pieces = _collectives.allgather_rows(tensor, lengths, comm).wait().split(lengths)
    return [pickle.loads(piece.numpy().tobytes()) for piece in pieces]


def barrier(process_set: Any = None) -> None:
    """Wait for all ranks. Collective; blocks."""
    refuse_process_set(process_set)
    _collectives.barrier(world().plain).wait()
