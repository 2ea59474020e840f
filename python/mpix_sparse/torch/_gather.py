# SPDX-License-Identifier: BSD-3-Clause
"""Allgather of tensors and objects, and a barrier."""

from __future__ import annotations

import pickle
from typing import Any, Sequence

import torch

from . import _collectives
from ._agree import agree
from ._collective import collective
from ._labels import describe_rows
from ._work import Work, WorkGroup
from ._nonblocking import gather_bytes, gather_numbers, gather_rows
from ._grouped import grouped_allreduce
from ._process_set import ranks_of
from ._tensors import refuse_other
from ._world import World


def start_allgather(
    tensors: Sequence[torch.Tensor], ranks: World, text: str = ""
) -> tuple[list[Work], list[list[int]]]:
    """Start an allgather of each tensor; returns also the numbers of rows, by tensor and rank. The text
    describes the call in errors; empty for the default."""
    problem = ""
    for tensor in tensors:
        refuse_other(tensor)
        if tensor.is_sparse or tensor.dim() == 0:
            problem = (
                "a tensor that is sparse, or has no dimension, cannot be joined to others along its first"
            )
    rows = ", ".join(map(describe_rows, tensors))
    first = 0 if problem or not tensors else len(tensors[0])
    lengths = [[each] for each in agree(text or f"allgather({rows})", problem, ranks, first)]
    if len(tensors) != 1:
        lengths = gather_numbers([len(tensor) for tensor in tensors], ranks.plain)
    by_tensor = [list(each) for each in zip(*lengths)]
    works = [gather_rows(tensor.detach(), each, ranks.plain) for tensor, each in zip(tensors, by_tensor)]
    return works, by_tensor


@collective
def allgather_async(tensor: torch.Tensor, name: str | None = None, process_set: Any = None) -> Work:
    """Start allgather(). Collective; blocks to exchange the tensors' lengths."""
    return start_allgather([tensor], ranks_of(process_set))[0][0]


@collective
def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: Any = None
) -> Work:
    """Start grouped_allgather(). Collective; blocks to exchange the tensors' lengths."""
    return Work(WorkGroup(start_allgather(list(tensors), ranks_of(process_set))[0]), lambda made: made)


class _Allgather(torch.autograd.Function):
    """As in Horovod, the gradient of this rank's rows is the mean over ranks."""

    @staticmethod
    def forward(ctx: Any, process_set: Any, *tensors: torch.Tensor) -> Any:
        ranks = ranks_of(process_set)
        works, lengths = start_allgather(tensors, ranks)
        firsts = [sum(each[: ranks.rank]) for each in lengths]
        ctx.process_set = process_set
        ctx.mine = [slice(first, first + len(tensor)) for first, tensor in zip(firsts, tensors)]
        return tuple(work.wait() for work in works)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        reduced = grouped_allreduce(gradients, process_set=ctx.process_set)
        return None, *(whole[mine] for whole, mine in zip(reduced, ctx.mine))


@collective
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
        TypeError: the argument is not a tensor, or MPI has no such type.
        ValueError: shapes or types differ, or a tensor has no first dimension; on all ranks.
    """
    return _Allgather.apply(process_set, tensor)[0]


@collective
def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: Any = None
) -> list[torch.Tensor]:
    """Concatenate several tensors, each with those in its place on all ranks. Collective; blocks.
    Differentiable.

    Args:
        tensors: the same number on all ranks, each as for allgather().
        name, process_set: as for allgather().

    Returns:
        New tensors, one for each.

    Raises:
        TypeError, ValueError: as for allgather(); also if numbers of tensors differ, on all ranks.
    """
    listed = list(tensors)
    return list(_Allgather.apply(process_set, *listed))


@collective
def allgather_object(obj: Any, name: str | None = None, process_set: Any = None) -> list[Any]:
    """Gather the objects of all ranks, in rank order. Collective; blocks.

    Raises:
        ValueError: an object cannot be pickled; on all ranks.
    """
    ranks = ranks_of(process_set)
    data, problem = _collectives.pickled(obj)
    lengths = agree("allgather_object()", problem, ranks, len(data))
    return [pickle.loads(each) for each in gather_bytes(data, lengths, ranks.plain)]


@collective
def barrier(process_set: Any = None) -> None:
    """Wait for all ranks, or those of a process set. Collective; blocks."""
    _collectives.barrier(ranks_of(process_set), later=False).wait()
