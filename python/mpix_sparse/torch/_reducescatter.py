# SPDX-License-Identifier: BSD-3-Clause
"""Reduction of tensors of which each rank keeps its share of the rows, with Horovod's interface."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from ._agree import agree
from ._collective import collective
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._gather import grouped_allgather
from ._process_set import ranks_of
from ._reduce_pieces import reduction_problem, start_dense, start_rows
from ._tensors import Adasum, Average, Op, Sum, choose_op, refuse_other, scale_, type_of
from ._work import Work, WorkGroup
from ._world import World


def _problem(tensor: torch.Tensor, op: Op) -> str:
    """The error in a tensor; empty if there is none."""
    if tensor.dim() == 0:
        return "the tensor has no dimension whose rows ranks could keep"
    if op is Adasum:
        return "there is no reducescatter with op Adasum"
    return reduction_problem(tensor, tensor.numel(), op)


def _describe(tensor: torch.Tensor) -> str:
    sparse = f", {tensor.sparse_dim()} sparse dimensions" if tensor.is_sparse else ""
    return f"{type_of(tensor)} of shape {tuple(tensor.shape)}{sparse}"


def _start_one(tensor: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float]) -> Work:
    """Start to reduce a tensor that has been checked, of which each rank keeps its share of the rows: the
    first ranks have one more if rows are not a multiple."""
    if tensor.is_sparse:
        return start_rows(tensor, op, ranks, scales)
    rows = tensor.shape[0]
    shares = [rows // ranks.size + (rank < rows % ranks.size) for rank in range(ranks.size)]
    row, shape = tensor.shape[1:].numel(), (shares[ranks.rank], *tensor.shape[1:])
    work = start_dense(tensor, [share * row for share in shares], op, ranks, scales)
    return Work(work, lambda made: made.view(shape).to(tensor.device))


def _start(tensors: Sequence[torch.Tensor], op: Op, ranks: World, scales: tuple[float, float]) -> list[Work]:
    """Start to reduce tensors. Collective; blocks to compare them. If it raises, no call has started."""
    for tensor in tensors:
        refuse_other(tensor)
    problem = next(filter(None, (_problem(tensor, op) for tensor in tensors)), "")
    described = ", ".join(map(_describe, tensors))
    agree(f"reducescatter({op.name}, {described})", problem, ranks)
    return [_start_one(tensor.detach(), op, ranks, scales) for tensor in tensors]


@collective
def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: Op = Average,
    process_set: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Work:
    """Start reducescatter(). Collective; blocks to compare shapes."""
    scales = prescale_factor, postscale_factor
    return _start([tensor], choose_op(None, op), ranks_of(process_set), scales)[0]


@collective
def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: Op = Average,
    process_set: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Work:
    """Start grouped_reducescatter(). Collective; blocks to compare shapes."""
    scales = prescale_factor, postscale_factor
    works = _start(list(tensors), choose_op(None, op), ranks_of(process_set), scales)
    return Work(WorkGroup(works), lambda made: made)


class _Reducescatter(torch.autograd.Function):
    """As in Horovod, the gradient of an average is the gradients of all ranks' rows, and that of a sum is as
    many times more as there are ranks."""

    @staticmethod
    def forward(ctx: Any, op: Op, process_set: Any, scales: Any, *tensors: torch.Tensor) -> Any:
        ctx.how = op, process_set, scales
        return tuple(grouped_reducescatter_async(tensors, None, op, process_set, *scales).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        op, process_set, scales = ctx.how
        if op not in (Average, Sum):
            raise RuntimeError(f"the gradient of a reducescatter with op {op.name} is not defined")
        factor = scales[0] * scales[1] * (ranks_of(process_set).size if op is Sum else 1)
        scaled = [scale_(gradient.clone(), factor) for gradient in gradients]
        return None, None, None, *grouped_allgather(scaled, None, process_set)


@collective
def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: Compressor = Compression.none,
    op: Op = Average,
    process_set: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduce a tensor over all ranks, of which each rank keeps its share of the rows. Collective; blocks.

    Rows are shared in rank order; if their number is not a multiple of the number of ranks, the first ranks
    have one more. Differentiable for Average and Sum if dense, with Horovod's factors: the gradient of an
    average is not divided by the number of ranks, and that of a sum is multiplied by it.

    Args:
        tensor: of the same shape and type on all ranks; dense or sparse COO.
        name: ignored; calls are matched by order.
        compression: as for allreduce().
        op: Average (the default), Sum, Min, Max or Product.
        process_set, prescale_factor, postscale_factor: as for allreduce().

    Returns:
        A new tensor with this rank's rows.

    Raises:
        TypeError: the argument is not a tensor, or the compression is unknown.
        ValueError: shapes, types or ops differ, or the op is not for the type; on all ranks.
        Error: the call failed.
    """
    how = name, compression, op, process_set, prescale_factor, postscale_factor
    return grouped_reducescatter([tensor], *how)[0]


@collective
def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: Compressor = Compression.none,
    op: Op = Average,
    process_set: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """Reduce several tensors, of each of which each rank keeps its rows. Collective; blocks.

    Args:
        tensors: the same number on all ranks, each as for reducescatter().
        name, compression, op, process_set, prescale_factor, postscale_factor: as for reducescatter().

    Returns:
        New tensors, one for each.

    Raises:
        TypeError, ValueError, Error: as for reducescatter(); also if numbers of tensors differ, on all ranks.
    """
    refuse_compression(compression)
    listed, scales = list(tensors), (prescale_factor, postscale_factor)
    for tensor in listed:
        refuse_other(tensor)
    compressed = [compression.compress(tensor) for tensor in listed]
    if any(tensor.is_sparse for tensor in listed):
        made = grouped_reducescatter_async(compressed, None, op, process_set, *scales).wait()
    else:
        made = _Reducescatter.apply(op, process_set, scales, *compressed)
    return [part.to(tensor.dtype) for part, tensor in zip(made, listed)]
