# SPDX-License-Identifier: BSD-3-Clause
"""Reduction of tensors of which each rank keeps its share of the rows, with Horovod's interface.

Dense tensors of types that MPI can add go through MPI_Ireduce_scatter. Sparse COO tensors and 16-bit floats
are reduced as by allreduce(), and each rank keeps its rows."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import torch

from .. import _types
from .._library import library
from .._pending import PendingCall
from ._agree import agree
from ._allreduce import start_allreduce, start_sparse
from ._work import Work, WorkGroup
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._gather import grouped_allgather
from ._process_set import ranks_of
from ._tensors import (
    Adasum,
    Average,
    Op,
    Sum,
    choose_op,
    on_host,
    refuse_average,
    refuse_other,
    scale_,
    sparse_of,
    type_of,
)
from ._world import World

HALVES = (torch.float16, torch.bfloat16)
MAX_COUNT = 2**31 - 1  # MPI counts in int


def _shares(rows: int, size: int) -> list[int]:
    """The number of rows that each rank keeps: the first ranks have one more if rows are not a multiple."""
    return [rows // size + (rank < rows % size) for rank in range(size)]


def _problem(tensor: torch.Tensor, op: Op) -> str:
    """What is wrong with a tensor; empty if nothing is."""
    if tensor.dim() == 0:
        return "the tensor has no dimension whose rows ranks could keep"
    if op is Adasum:
        return "there is no reducescatter with op Adasum"
    if tensor.numel() > MAX_COUNT and not tensor.is_sparse:
        return f"the tensor has {tensor.numel()} elements; {MAX_COUNT} are the most"
    try:
        refuse_average(tensor, op)
        _types.datatype(type_of(tensor))
        _types.operation(op.reduction, type_of(tensor))
    except (TypeError, ValueError) as reason:
        return str(reason)
    return ""


def _described(tensor: torch.Tensor) -> str:
    sparse = f", {tensor.sparse_dim()} sparse dimensions" if tensor.is_sparse else ""
    return f"{type_of(tensor)} of {tuple(tensor.shape)}{sparse}"


def _mine(whole: torch.Tensor, rows: slice) -> torch.Tensor:
    """Some rows of a tensor, which is coalesced if it is sparse, in memory of their own."""
    if not whole.is_sparse:
        return whole[rows].clone()
    indices, values = whole._indices(), whole._values()
    first, last = torch.searchsorted(indices[0].contiguous(), torch.tensor([rows.start, rows.stop])).tolist()
    local = indices[:, first:last].clone()
    local[0] -= rows.start
    shape = (rows.stop - rows.start, *whole.shape[1:])
    return sparse_of(local, values[first:last].clone(), whole, shape)._coalesced_(True)


def _start_whole(
    tensor: torch.Tensor, rows: slice, op: Op, ranks: World, scales: tuple[float, float]
) -> Work:
    """Start to reduce a tensor on all ranks, and keep some rows."""
    if tensor.is_sparse:
        work = start_sparse(tensor, op, ranks, scales=scales)
    else:
        work = start_allreduce(tensor, torch.empty_like(tensor), op, ranks, scales)
    return Work(work, lambda whole: _mine(whole, rows))


def _start_one(tensor: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float]) -> Work:
    """Start to reduce a tensor that has been checked, of which each rank keeps its rows."""
    shares = _shares(tensor.shape[0], ranks.size)
    first = sum(shares[: ranks.rank])
    rows = slice(first, first + shares[ranks.rank])
    if tensor.is_sparse or tensor.dtype in HALVES:
        return _start_whole(tensor, rows, op, ranks, scales)
    source, row = on_host(tensor), tensor.shape[1:].numel()
    if scales[0] != 1:
        source = scale_(source.clone(), scales[0])
    made = source.new_empty((shares[ranks.rank], *tensor.shape[1:]))
    counts = (ctypes.c_int * ranks.size)(*(share * row for share in shares))
    pending = PendingCall((source, made, counts), lambda: made)
    buffers = (ctypes.c_void_p(each.data_ptr()) for each in (source, made))
    how = _types.datatype(type_of(tensor)), _types.operation(op.reduction, type_of(tensor)), ranks.plain
    code = library.MPI_Ireduce_scatter(*buffers, counts, *how, ctypes.byref(pending.request))
    finish = lambda _: scale_(made, scales[1], op.divisor(ranks.size)).to(tensor.device)  # noqa: E731
    return Work(pending.begin(code), finish)


def _start(tensors: Sequence[torch.Tensor], op: Op, ranks: World, scales: tuple[float, float]) -> list[Work]:
    """Start to reduce tensors. Collective; blocks to compare them. If it raises, no call has started."""
    for tensor in tensors:
        refuse_other(tensor)
    problem = next(filter(None, (_problem(tensor, op) for tensor in tensors)), "")
    described = ", ".join(map(_described, tensors))
    agree(f"tensors here are {described}, with op {op.name}", "others", problem, ranks.plain)
    return [_start_one(tensor.detach(), op, ranks, scales) for tensor in tensors]


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
        TypeError: the argument is not a tensor, or the compression is unknown. Only on this rank.
        ValueError: shapes, types or ops differ, or the op is not for the type; on all ranks.
        Error: the call failed.
    """
    how = name, compression, op, process_set, prescale_factor, postscale_factor
    return grouped_reducescatter([tensor], *how)[0]


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
