# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall of tensors with Horovod's interface. Rows of the first dimension go to the ranks in order; rows of
a sparse COO tensor are its slices along the first dimension, of which only the elements are sent."""

from __future__ import annotations

import itertools
from typing import Any, Sequence

import torch

from ._collective import collective
from ._exchange import (
    Pair,
    agree_on_numbers,
    rows_by_rank,
    size_problem,
    start_exchange,
    start_sparse_exchange,
)
from ._labels import describe_rows
from ._nonblocking import MAX_ELEMENTS, starts
from ._process_set import ranks_of
from ._tensors import on_host, refuse_other, sparse_of
from ._work import Work
from ._world import World


def _describe(tensor: torch.Tensor) -> str:
    sparse = f", {tensor.sparse_dim()} sparse dimensions" if tensor.is_sparse else ""
    return f"alltoall({describe_rows(tensor)}{sparse})"


def _split(tensor: torch.Tensor, rows: Sequence[int]) -> list[Pair]:
    """The elements of a sparse tensor for each rank, whose row numbers start at 0 for each."""
    indices, values = on_host(tensor._indices()), on_host(tensor._values())
    ends = torch.tensor(list(itertools.accumulate(rows)))
    owners = torch.searchsorted(ends, indices[0].contiguous(), right=True)
    order, counts = torch.sort(owners, stable=True)[1], torch.bincount(owners, minlength=len(rows)).tolist()
    local = indices.clone()
    local[0] -= torch.tensor(starts(rows))[owners]
    return list(zip(local[:, order].split(counts, 1), values[order].split(counts)))


def _join(tensor: torch.Tensor, pieces: Sequence[Pair], rows: Sequence[int]) -> torch.Tensor:
    """The sparse tensor of the elements that ranks have sent, whose rows follow one another."""
    for (indices, _), first in zip(pieces, starts(rows)):
        indices[0] += first
    indices, values = torch.cat([each for each, _ in pieces], 1), torch.cat([each for _, each in pieces])
    return sparse_of(indices, values, tensor, (sum(rows), *tensor.shape[1:]))


def _start(tensor: torch.Tensor, splits: Any, ranks: World) -> Work:
    """Start to send rows; returns the new tensor, and the number of its rows that came from each rank."""
    refuse_other(tensor)
    tensor, row = tensor.detach(), tensor.shape[1:].numel()
    rows, problem = rows_by_rank("the tensor", tensor, splits, ranks.size)
    parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)
    problem = problem or size_problem(*([part] for part in parts))
    pieces = _split(tensor, rows) if tensor.is_sparse and not problem else []
    sizes = [len(values) for _, values in pieces] if pieces else [0] * ranks.size

    def check(found: Sequence[Sequence[int]]) -> str:
        most = max(tensor.sparse_dim(), tensor._values().shape[1:].numel()) if tensor.is_sparse else row
        count = most * sum(numbers[int(tensor.is_sparse)] for numbers in found)
        return (
            f"{count} elements are too many for a call; at most {MAX_ELEMENTS} fit"
            if count > MAX_ELEMENTS
            else ""
        )

    numbers = [list(pair) for pair in zip(rows, sizes)]
    found = agree_on_numbers(_describe(tensor), problem, numbers, ranks, check)
    arrived = [count for count, _ in found]
    dtype = splits.dtype if isinstance(splits, torch.Tensor) else torch.int32
    if tensor.is_sparse:
        dims, shape = tensor.sparse_dim(), tensor._values().shape[1:]
        work = start_sparse_exchange(pieces, [((dims, nnz), (nnz, *shape)) for _, nnz in found], ranks.plain)
        whole = lambda made: _join(tensor, made, arrived)  # noqa: E731
    else:
        source = on_host(tensor)
        counts = [[count * row for count in each] for each in (rows, arrived)]
        made = source.new_empty((sum(arrived), *tensor.shape[1:]))
        work = start_exchange(source, counts[0], made, counts[1], ranks.plain)
        whole = lambda made: made.to(tensor.device)  # noqa: E731
    return Work(work, lambda made: (whole(made), torch.tensor(arrived, dtype=dtype)))


@collective
def alltoall_async(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None, process_set: Any = None
) -> Work:
    """Start alltoall(). Collective; blocks to exchange the numbers of rows. synchronize() returns the tensor
    and the numbers of rows, with and without splits."""
    return _start(tensor, splits, ranks_of(process_set))


class _Alltoall(torch.autograd.Function):
    """The gradients of rows go back to the ranks that the rows came from."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Any, process_set: Any) -> Any:
        made, rows = alltoall_async(tensor, splits, None, process_set).wait()
        ctx.rows, ctx.process_set = rows, process_set
        ctx.mark_non_differentiable(rows)
        return made, rows

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, unused: Any) -> Any:
        return _Alltoall.apply(gradient, ctx.rows, ctx.process_set)[0], None, None


@collective
def alltoall(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None, process_set: Any = None
) -> Any:
    """Send rows of a tensor to all ranks, and concatenate those that come from them, in rank order.
    Collective; blocks. Differentiable if dense: backward() is collective too.

    Args:
        tensor: dense or sparse COO; of the same type on all ranks, and of the same shape except for the first
            dimension. Of a sparse one only the elements are sent.
        splits: the number of rows for each rank, a list or a tensor of integers; None for equal numbers.
        name: ignored; calls are matched by order.
        process_set: as for allreduce().

    Returns:
        A new tensor; with splits also a tensor with the number of rows that came from each rank.

    Raises:
        TypeError: the argument is not a tensor.
        ValueError: shapes or types differ, splits does not fit, more than 2**31 - 1 elements come to a rank,
            or without splits the number of rows is not a multiple of the number of ranks; on all ranks.
    """
    refuse_other(tensor)
    if tensor.is_sparse:
        made, rows = alltoall_async(tensor, splits, name, process_set).wait()
    else:
        made, rows = _Alltoall.apply(tensor, splits, process_set)
    return made if splits is None else (made, rows)
