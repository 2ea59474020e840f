# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of several dense tensors as one of each type, under the names that Horovod's users know."""

from __future__ import annotations

from typing import Any, Iterable

import torch

from ._allreduce import All, Work, allreduce_async_
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._ops import refuse_gradient
from ._tensors import Op, choose_op, on_host, refuse_average, refuse_other
from ._world import refuse_process_set


def _listed(tensors: Iterable[torch.Tensor], op: Op) -> list[torch.Tensor]:
    """The tensors, which may come from a generator, once all of them are known to go with the operation."""
    listed = list(tensors)
    for tensor in listed:
        refuse_other(tensor)
        refuse_average(tensor, op)
    return listed


def grouped_allreduce_async_(
    tensors: Iterable[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> Work:
    """Start to reduce several dense tensors in place; those of one type travel as one. Collective; see
    grouped_allreduce()."""
    refuse_process_set(process_set)
    chosen, works, parts = choose_op(average, op), [], []
    listed = _listed(tensors, chosen)
    for dtype in sorted({tensor.dtype for tensor in listed}, key=str):
        alike = [tensor for tensor in listed if tensor.dtype == dtype]
        flat = torch.cat([on_host(tensor).reshape(-1) for tensor in alike])
        works.append(allreduce_async_(flat, None, name, chosen, prescale_factor, postscale_factor))
        parts.append((flat, alike))
    return Work(All(works), lambda _: _scatter(parts, listed))


def _scatter(parts: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    for flat, alike in parts:
        for piece, tensor in zip(flat.split([tensor.numel() for tensor in alike]), alike):
            tensor.detach().copy_(piece.view(tensor.shape))
    return tensors


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


def grouped_allreduce_async(
    tensors: Iterable[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> Work:
    """Start to reduce several dense tensors into new ones. Collective; see grouped_allreduce()."""
    how = average, name, op, prescale_factor, postscale_factor, process_set
    copies = [tensor.detach().clone() for tensor in _listed(tensors, choose_op(average, op))]
    return grouped_allreduce_async_(copies, *how)


class _Grouped(torch.autograd.Function):
    """The gradients of sums over ranks are the sums of gradients, which travel together too."""

    @staticmethod
    def forward(ctx: Any, op: Op, prescale: float, postscale: float, *tensors: torch.Tensor) -> Any:
        ctx.how = op, prescale, postscale
        return tuple(grouped_allreduce_async(tensors, None, None, op, prescale, postscale).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        refuse_gradient(ctx.how[0].name)
        return None, None, None, *_Grouped.apply(*ctx.how, *gradients)


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
        tensors: as many, of the same shapes and types, on all ranks; they may be of several types.
        average, name, compression, op, prescale_factor, postscale_factor, process_set: as of allreduce().

    Raises:
        TypeError: one is no tensor, or sparse. Only this rank learns of it.
        ValueError, Error: as allreduce().
    """
    refuse_process_set(process_set)
    refuse_compression(compression)
    chosen = choose_op(average, op)
    listed = _listed(tensors, chosen)
    narrow = [compression.compress(tensor) for tensor in listed]
    reduced = _Grouped.apply(chosen, prescale_factor, postscale_factor, *narrow)
    return [made.to(tensor.dtype) for made, tensor in zip(reduced, listed)]
