# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of tensors, under the names that Horovod's users know."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from .. import _dense, _coo
from ._compression import Compression, Compressor
from ._tensors import (
    Average,
    Op,
    Sum,
    choose_op,
    coordinates,
    on_host,
    refuse_average,
    scale_,
    sparse_like,
    type_of,
)
from ._world import world


class Work:
    """A call in flight, to be given to synchronize() or poll()."""

    def __init__(self, handle: Any, finish: Callable[[Any], Any]) -> None:
        self._handle, self._finish = handle, finish
        self._outcome: Any = None

    def done(self) -> bool:
        """Whether the call is complete."""
        return self._finish is None or self._handle.done()

    def wait(self) -> Any:
        """Wait for the call; returns its tensor, and the same again when called again."""
        if self._finish is not None:
            self._outcome = self._finish(self._handle.wait())
            self._finish = None
        return self._outcome


def synchronize(work: Work) -> Any:
    """Wait for a call and return its tensor. Every rank must, for each of its calls.

    Raises:
        Error: the call failed, on every rank.
    """
    return work.wait()


def poll(work: Work) -> bool:
    """Whether a call is complete, so that synchronize() would not wait. Moves all calls in flight."""
    return work.done()


def _start(tensor: torch.Tensor, into: torch.Tensor, op: Op, prescale: float, postscale: float) -> Work:
    """Reduce `tensor` into `into`, which may be the same, and may be on a device or have gaps."""
    refuse_average(tensor, op)
    buffer = on_host(tensor)
    if buffer.data_ptr() == tensor.data_ptr() and into.data_ptr() != tensor.data_ptr():
        buffer = buffer.clone()
    scale_(buffer, prescale)
    handle = _dense.iallreduce(buffer, op.reduction, comm=world().comm(type_of(buffer)), out=buffer)

    def finish(_: Any) -> torch.Tensor:
        scale_(buffer, postscale, op.divisor(world().size))
        if buffer.data_ptr() != into.data_ptr():
            into.detach().copy_(buffer)
        return into

    return Work(handle, finish)


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Work:
    """Start to reduce a dense tensor over all ranks in place. Collective; see allreduce()."""
    return _start(tensor, tensor, choose_op(average, op), prescale_factor, postscale_factor)


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Work:
    """Start to reduce a tensor over all ranks into a new one. Collective; see allreduce()."""
    if tensor.is_sparse:
        return sparse_allreduce_async(tensor, name, choose_op(average, op))
    into = torch.empty_like(tensor.detach())
    return _start(tensor, into, choose_op(average, op), prescale_factor, postscale_factor)


class _Allreduce(torch.autograd.Function):
    """The gradient of a sum over ranks is the sum of the gradients."""

    @staticmethod
    def forward(
        context: Any, tensor: torch.Tensor, op: Op, prescale: float, postscale: float
    ) -> torch.Tensor:
        context.arguments = op, prescale, postscale
        return allreduce_async(tensor, None, None, op, prescale, postscale).wait()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        op, prescale, postscale = context.arguments
        if op not in (Average, Sum):
            raise RuntimeError(f"the gradient of an allreduce with op {op.name} is not defined")
        reduced = allreduce_async(gradient, None, None, op, prescale, postscale).wait()
        return reduced, None, None, None


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Compressor = Compression.none,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduce a tensor over all ranks. Collective: all ranks make the same calls in the same order; blocks.

    A tensor that holds mostly zeros, or is sparse, costs what its elements cost. All ranks get the same bits.
    Gradients flow through the call, for Average and Sum.

    Args:
        tensor: of the same shape and type on all ranks; dense, or sparse COO without the two factors.
        average: the old way to say op: Average if True, Sum if False.
        name: for the reader; calls are matched by their order.
        compression: what floats are rounded to before they are added.
        op: Average (the default), Sum, Min, Max or Product.
        prescale_factor, postscale_factor: what numbers are multiplied by before and after.

    Returns:
        A new tensor.

    Raises:
        ValueError: there is no such op, or it is Average and the numbers are whole. Only this rank learns.
        Error: the library's sentence, on all ranks.
    """
    chosen = choose_op(average, op)
    if tensor.is_sparse:
        return sparse_allreduce_async(tensor, name, chosen).wait()
    narrow = compression.compress(tensor)
    reduced = _Allreduce.apply(narrow, chosen, prescale_factor, postscale_factor)
    return reduced.to(tensor.dtype)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduce a dense tensor over all ranks in place, and return it. Collective; see allreduce()."""
    return allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor).wait()


def sparse_allreduce_async(tensor: torch.Tensor, name: str | None = None, op: Op = Average) -> Work:
    """Start to reduce a sparse COO tensor over all ranks. Collective; blocks not.

    Args:
        tensor: of the same shape, type and number of sparse dimensions on all ranks; need not be coalesced,
            and may be empty on some. Its rows, if it has dense dimensions, are present or absent as a whole.
        name: for the reader; calls are matched by their order.
        op: as of allreduce().

    Returns:
        Work, whose tensor is a new, coalesced sparse one.
    """
    refuse_average(tensor, op)
    tensor = tensor.detach()
    indices, values = coordinates(tensor)
    sparse_dim, comm = tensor.sparse_dim(), world().comm(type_of(values))
    count = tensor.shape[:sparse_dim].numel()
    handle = _coo.iallreduce_coo(indices, values, count, op.reduction, comm=comm)

    def finish(result: Any) -> torch.Tensor:
        made = sparse_like(tensor, sparse_dim, result)
        scale_(made._values(), 1, op.divisor(world().size))
        return made

    return Work(handle, finish)


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
) -> Work:
    """Start to reduce several dense tensors in place; those of one type travel as one. Collective."""
    chosen, works, parts = choose_op(average, op), [], []
    for dtype in sorted({tensor.dtype for tensor in tensors}, key=str):
        alike = [tensor for tensor in tensors if tensor.dtype == dtype]
        flat = torch.cat([on_host(tensor).reshape(-1) for tensor in alike])
        works.append(allreduce_async_(flat, None, name, chosen))
        parts.append((flat, alike))
    return Work(_All(works), lambda _: _scatter(parts, tensors))


class _All:
    """Handles as one."""

    def __init__(self, works: list[Work]) -> None:
        self._works = works

    def done(self) -> bool:
        """Whether all are complete."""
        return all([work.done() for work in self._works])

    def wait(self) -> None:
        """Wait for all."""
        for work in self._works:
            work.wait()


def _scatter(parts: Any, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    for flat, alike in parts:
        for piece, tensor in zip(flat.split([tensor.numel() for tensor in alike]), alike):
            tensor.detach().copy_(piece.view(tensor.shape))
    return list(tensors)


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
) -> list[torch.Tensor]:
    """Reduce several dense tensors in place, and return them. Collective; see allreduce()."""
    return grouped_allreduce_async_(tensors, average, name, op).wait()


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
) -> Work:
    """Start to reduce several dense tensors into new ones. Collective; see allreduce()."""
    return grouped_allreduce_async_([tensor.detach().clone() for tensor in tensors], average, name, op)


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
) -> list[torch.Tensor]:
    """Reduce several dense tensors into new ones. Collective; see allreduce()."""
    return grouped_allreduce_async(tensors, average, name, op).wait()
