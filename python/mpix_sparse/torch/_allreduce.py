# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of tensors, under the names that Horovod's users know."""

from __future__ import annotations

import threading
from typing import Any, Callable, Sequence

import torch

from .. import _dense, _coo
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._ops import operator
from ._tensors import (
    OPS,
    Average,
    Op,
    as_array,
    choose_op,
    coordinates,
    is_plain,
    on_host,
    refuse_average,
    refuse_other,
    refuse_process_set,
    scale_,
    sparse_like,
    type_of,
)
from ._world import World, world


class Work:
    """A call in flight, to be given to synchronize() or poll()."""

    def __init__(self, handle: Any, finish: Callable[[Any], Any]) -> None:
        self._handle, self._finish = handle, finish
        self._outcome: Any = None
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Whether the call is complete."""
        return self._finish is None or self._handle.done()

    def wait(self) -> Any:
        """Wait for the call; returns its tensor, and the same again when called again."""
        with self._lock:
            if self._finish is not None:
                self._outcome = self._finish(self._handle.wait())
                self._finish = None
        return self._outcome


class All:
    """Calls as one."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works

    def done(self) -> bool:
        """Whether all are complete."""
        return all([work.done() for work in self._works])

    def wait(self) -> list[Any]:
        """Wait for all; returns their tensors."""
        return [work.wait() for work in self._works]


def synchronize(work: Work) -> Any:
    """Wait for a call and return its tensor. Every rank must, for each of its calls.

    Raises:
        TypeError: it is none.
        Error: the call failed, on every rank.
    """
    return _started(work).wait()


def poll(work: Work) -> bool:
    """Whether a call is complete, so that synchronize() would not wait. Moves all calls in flight."""
    return _started(work).done()


def _started(work: Any) -> Work:
    if not isinstance(work, Work):
        raise TypeError(f"what a call ending in _async returned is needed, not {type(work).__name__}")
    return work


def start_allreduce(
    tensor: torch.Tensor, into: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float] = (1, 1)
) -> Work:
    """Reduce `tensor` into `into`, or itself: on a device, with gaps, or, without scales, sparse COO."""
    refuse_other(tensor)
    if tensor.is_sparse:
        return start_sparse(tensor, op, ranks, into)
    refuse_average(tensor, op)
    source = on_host(tensor)
    target = into.detach() if is_plain(into) else torch.empty_like(source)
    if scales[0] != 1:
        source = scale_(target.copy_(source), scales[0])
    array = as_array(source)
    out = array if source.data_ptr() == target.data_ptr() else as_array(target)
    handle = _dense.iallreduce(array, op.reduction, comm=ranks.comm(array.type), out=out)

    def finish(_: Any) -> torch.Tensor:
        scale_(target, scales[1], op.divisor(ranks.size))
        if target.data_ptr() != into.data_ptr():
            into.detach().copy_(target)
        return into

    return Work(handle, finish)


def start_sparse(tensor: torch.Tensor, op: Op, ranks: World, into: torch.Tensor | None = None) -> Work:
    """Reduce a sparse COO tensor into a new one, which `into` becomes if it is given."""
    refuse_average(tensor, op)
    tensor = tensor.detach()
    indices, values = coordinates(tensor)
    sparse_dim = tensor.sparse_dim()
    count, comm = tensor.shape[:sparse_dim].numel(), ranks.comm(type_of(values))
    handle = _coo.iallreduce_coo(as_array(indices), as_array(values), count, op.reduction, comm=comm)

    def finish(result: Any) -> torch.Tensor:
        made = sparse_like(tensor, sparse_dim, result, op.divisor(ranks.size))
        if into is None:
            return made
        into.data = made
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
    scales = prescale_factor, postscale_factor
    return start_allreduce(tensor, tensor, choose_op(average, op), world(), scales)


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Work:
    """Start to reduce a tensor over all ranks into a new one. Collective; see allreduce()."""
    refuse_other(tensor)
    if tensor.is_sparse:
        return sparse_allreduce_async(tensor, name, choose_op(average, op))
    into = torch.empty_like(tensor.detach())
    scales = prescale_factor, postscale_factor
    return start_allreduce(tensor, into, choose_op(average, op), world(), scales)


def _reduce(tensor: torch.Tensor, op: str, prescale: float, postscale: float) -> torch.Tensor:
    return allreduce_async(tensor, None, None, OPS[op], prescale, postscale).wait()


_allreduce = operator(_reduce)


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Compressor = Compression.none,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: None = None,
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
        process_set: None, which is all ranks.

    Returns:
        A new tensor.

    Raises:
        TypeError: there is no such compression, or the tensor's layout or type has no such reduction. Only
            this rank learns of it.
        ValueError: there is no such op, or it is Average and the numbers are whole. Only this rank learns.
        Error: the library's sentence, on all ranks.
    """
    refuse_process_set(process_set)
    refuse_compression(compression)
    refuse_other(tensor)
    chosen = choose_op(average, op)
    if tensor.is_sparse:
        return sparse_allreduce_async(tensor, name, chosen).wait()
    narrow = compression.compress(tensor)
    reduced = _allreduce(narrow, chosen.name, prescale_factor, postscale_factor)
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

    Raises:
        TypeError: the tensor is no sparse COO one. Only this rank learns of it.
    """
    refuse_other(tensor)
    if not tensor.is_sparse:
        raise TypeError("the tensor is dense; a sparse COO one is needed")
    return start_sparse(tensor, op, world())


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
    return Work(All(works), lambda _: _scatter(parts, tensors))


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
