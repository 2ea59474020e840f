# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of several dense tensors, one call for each type, with Horovod's interface."""

from __future__ import annotations

import zlib
from typing import Any, Iterable, Sequence

import torch

from .. import _types
from ._adasum import start_adasum
from ._agree import agree, text_and_label
from ._allreduce import start_allreduce
from ._work import Work, WorkGroup, finished_work
from ._collective import collective
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._ops import refuse_gradient
from ._process_set import ranks_of
from ._tensors import Adasum, Op, choose_op, on_host, refuse_average, refuse_factors, refuse_other, type_of
from ._world import World


def _checked(tensors: Iterable[torch.Tensor], op: Op) -> list[torch.Tensor]:
    """The tensors, from any iterable, checked for the op."""
    listed = list(tensors)
    for tensor in listed:
        refuse_other(tensor)
        if tensor.is_sparse:
            text = "tensors of layout torch.sparse_coo cannot be sent in a group; reduce each by allreduce()"
            raise TypeError(text)
        refuse_average(tensor, op)
        _types.operation(op.reduction or "sum", type_of(tensor))
    return listed


def _describe(tensors: Sequence[torch.Tensor], op: Op) -> str:
    """The description of a call, with a checksum in front, since texts in errors have a limited length."""
    listed = ", ".join(f"{type_of(tensor)} of shape {tuple(tensor.shape)}" for tensor in tensors)
    checksum = zlib.crc32(listed.encode())
    return f"grouped_allreduce({op.name} of {len(tensors)} tensors with checksum {checksum:08x}: {listed})"


def _new_like(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """New tensors of the same shapes and types, for the result."""
    return [torch.empty_like(tensor.detach()) for tensor in tensors]


def _start(
    tensors: Sequence[torch.Tensor],
    outputs: list[torch.Tensor],
    op: Op,
    scales: tuple[float, float],
    ranks: World,
) -> Work:
    """Start to reduce tensors into outputs, which may be the tensors, one call for each type. If it raises,
    no call has started."""
    for tensor in tensors:
        refuse_factors(tensor, scales)
    if op is Adasum:
        start_adasum(tensors, outputs, ranks, scales)
        return finished_work(outputs)
    text = _describe(tensors, op)
    parts = []
    for dtype in sorted({tensor.dtype for tensor in tensors}, key=str):
        alike = [i for i, tensor in enumerate(tensors) if tensor.dtype == dtype]
        flat = torch.cat([on_host(tensors[i]).reshape(-1) for i in alike])
        parts.append((flat, [outputs[i] for i in alike]))
    if len(parts) != 1 and ranks.checks:
        agree(text, "", ranks)  # on a rank with other types, another number of calls would start
    group = text_and_label(text)
    works = [start_allreduce(flat, flat, op, ranks, scales, group) for flat, _ in parts]

    def finish(_: Any) -> list[torch.Tensor]:
        for flat, targets in parts:
            for piece, target in zip(flat.split([target.numel() for target in targets]), targets):
                target.detach().copy_(piece.view(target.shape))
        return outputs

    return Work(WorkGroup(works), finish)


@collective
def grouped_allreduce_async_(
    tensors: Iterable[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> Work:
    """Start to reduce several dense tensors in place, one call for each type. Collective; blocks to compare
    the list if it has several types; see grouped_allreduce()."""
    chosen, ranks = choose_op(average, op), ranks_of(process_set)
    listed = _checked(tensors, chosen)
    return _start(listed, listed, chosen, (prescale_factor, postscale_factor), ranks)


@collective
def grouped_allreduce_(
    tensors: Iterable[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> list[torch.Tensor]:
    """Reduce several dense tensors in place, and return them. Collective; see grouped_allreduce()."""
    how = average, name, op, prescale_factor, postscale_factor, process_set
    return grouped_allreduce_async_(tensors, *how).wait()


@collective
def grouped_allreduce_async(
    tensors: Iterable[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> Work:
    """Start to reduce several dense tensors into new ones. Collective; see grouped_allreduce_async_()."""
    chosen, ranks = choose_op(average, op), ranks_of(process_set)
    listed = _checked(tensors, chosen)
    return _start(listed, _new_like(listed), chosen, (prescale_factor, postscale_factor), ranks)


class _Grouped(torch.autograd.Function):
    """The gradient of a sum over ranks is the sum of the gradients, which are reduced in a group too."""

    @staticmethod
    def forward(
        ctx: Any, op: Op, prescale: float, postscale: float, ranks: World, *tensors: torch.Tensor
    ) -> Any:
        ctx.how = op, prescale, postscale, ranks
        return tuple(_start(tensors, _new_like(tensors), op, (prescale, postscale), ranks).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        refuse_gradient(ctx.how[0].name)
        return None, None, None, None, *_Grouped.apply(*ctx.how, *gradients)


@collective
def grouped_allreduce(
    tensors: Iterable[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: Compressor = Compression.none,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> list[torch.Tensor]:
    """Reduce several dense tensors into new ones. Collective; blocks. Gradients flow through the call, for
    Average and Sum.

    Args:
        tensors: of the same number, shapes and types on all ranks; types may differ within the list.
        average, name, compression, op, prescale_factor, postscale_factor, process_set: as for allreduce().

    Raises:
        TypeError: an argument is not a tensor, or is sparse.
        ValueError, NotImplementedError, Error: as for allreduce(). With Adasum each tensor is combined for
            itself.
    """
    refuse_compression(compression)
    chosen, ranks = choose_op(average, op), ranks_of(process_set)
    listed = _checked(tensors, chosen)
    compressed = [compression.compress(tensor) for tensor in listed]
    reduced = _Grouped.apply(chosen, prescale_factor, postscale_factor, ranks, *compressed)
    return [made.to(tensor.dtype) for made, tensor in zip(reduced, listed)]
