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
    scale_,
    sparse_like,
    type_of,
)
from ._world import World, refuse_process_set, world


class Work:
    """A call in flight, for synchronize() or poll()."""

    def __init__(self, handle: Any, finish: Callable[[Any], Any]) -> None:
        self._handle, self._finish = handle, finish
        self._result: Any = None
        self._lock = threading.Lock()

    def done(self) -> bool:
        """True if the call is complete."""
        return self._finish is None or self._handle.done()

    def wait(self) -> Any:
        """Wait for the call; returns its tensor, also when called again."""
        with self._lock:
            if self._finish is not None:
                self._result = self._finish(self._handle.wait())
                self._finish = None
        return self._result


class WorkGroup:
    """Several calls as one."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works

    def done(self) -> bool:
        """True if all calls are complete."""
        return all([work.done() for work in self._works])

    def wait(self) -> list[Any]:
        """Wait for all calls; returns their tensors."""
        return [work.wait() for work in self._works]


def synchronize(work: Work) -> Any:
    """Wait for a call and return its tensor. Every rank must do this for each of its calls.

    Raises:
        TypeError: the argument is not a Work.
        Error: the call failed, on every rank.
    """
    return _started(work).wait()


def poll(work: Work) -> bool:
    """True if a call is complete, so that synchronize() would not wait. Makes progress on all calls in
    flight."""
    return _started(work).done()


def _started(work: Any) -> Work:
    if not isinstance(work, Work):
        raise TypeError(f"what a call ending in _async returned is needed, not {type(work).__name__}")
    return work


def start_allreduce(
    tensor: torch.Tensor, output: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float] = (1, 1)
) -> Work:
    """Start to reduce `tensor` into `output`, which may be `tensor`. Tensors may be on a device, not
    contiguous, or sparse COO."""
    refuse_other(tensor)
    if tensor.is_sparse:
        return start_sparse(tensor, op, ranks, output, scales)
    refuse_average(tensor, op)
    source = on_host(tensor)
    buffer = output.detach() if is_plain(output) else torch.empty_like(source)
    if scales[0] != 1:
        source = scale_(buffer.copy_(source), scales[0])
    array = as_array(source)
    out = array if source.data_ptr() == buffer.data_ptr() else as_array(buffer)
    handle = _dense.iallreduce(array, op.reduction, comm=ranks.comm(array.type), out=out)

    def finish(_: Any) -> torch.Tensor:
        scale_(buffer, scales[1], op.divisor(ranks.size))
        if buffer.data_ptr() != output.data_ptr():
            output.detach().copy_(buffer)
        return output

    return Work(handle, finish)


def start_sparse(
    tensor: torch.Tensor,
    op: Op,
    ranks: World,
    output: torch.Tensor | None = None,
    scales: tuple[float, float] = (1, 1),
) -> Work:
    """Start to reduce a sparse COO tensor into a new one; `output`, if given, gets its data."""
    refuse_average(tensor, op)
    tensor = tensor.detach()
    indices, values = coordinates(tensor)
    if scales[0] != 1:
        values = scale_(values.clone(), scales[0])
    sparse_dim = tensor.sparse_dim()
    count, comm = tensor.shape[:sparse_dim].numel(), ranks.comm(type_of(values))
    handle = _coo.iallreduce_coo(as_array(indices), as_array(values), count, op.reduction, comm=comm)

    def finish(result: Any) -> torch.Tensor:
        made = sparse_like(tensor, sparse_dim, result, op.divisor(ranks.size), scales[1])
        if output is None:
            return made
        output.data = made
        return output

    return Work(handle, finish)


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> Work:
    """Start to reduce a tensor over all ranks in place. Collective; see allreduce()."""
    refuse_process_set(process_set)
    scales = prescale_factor, postscale_factor
    return start_allreduce(tensor, tensor, choose_op(average, op), world(), scales)


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> Work:
    """Start to reduce a tensor over all ranks into a new one. Collective; see allreduce()."""
    refuse_process_set(process_set)
    refuse_other(tensor)
    chosen, scales = choose_op(average, op), (prescale_factor, postscale_factor)
    if tensor.is_sparse:
        return start_sparse(tensor, chosen, world(), scales=scales)
    return start_allreduce(tensor, torch.empty_like(tensor.detach()), chosen, world(), scales)


def _reduce(tensor: torch.Tensor, op: str, prescale: float, postscale: float) -> torch.Tensor:
    if op not in OPS:
        raise ValueError(f"op is {op!r}; it must be one of {', '.join(OPS)}")
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
    process_set: Any = None,
) -> torch.Tensor:
    """Reduce a tensor over all ranks. Collective: all ranks make the same calls in the same order; blocks.

    The cost depends on the number of non-zero elements. All ranks get the same bits. The call is
    differentiable for Average and Sum. Small dense tensors are passed to MPI (FORWARD in mpix_sparse(7)),
    without a check that sizes and types are equal on all ranks: if they differ, results are wrong or MPI
    fails. MPIX_SPARSE_FORWARD=0 makes ranks check these too.

    Args:
        tensor: of the same shape and type on all ranks; dense or sparse COO.
        average: the old form of op: Average if True, Sum if False.
        name: ignored; calls are matched by order.
        compression: the type that floats are rounded to before the reduction.
        op: Average (the default), Sum, Min, Max or Product.
        prescale_factor, postscale_factor: factors before and after the reduction.
        process_set: None or global_process_set, which is all ranks.

    Returns:
        A new tensor.

    Raises:
        TypeError: the compression is unknown, or the tensor's layout or type cannot be reduced with op. Only
            on this rank.
        ValueError: op is unknown, or is Average for a tensor of integers. Only on this rank.
        Error: the call failed, on all ranks.
    """
    refuse_process_set(process_set)
    refuse_compression(compression)
    refuse_other(tensor)
    chosen, compressed = choose_op(average, op), compression.compress(tensor)
    scales = prescale_factor, postscale_factor
    if tensor.is_sparse:
        return start_sparse(compressed, chosen, world(), scales=scales).wait().to(tensor.dtype)
    return _allreduce(compressed, chosen.name, *scales).to(tensor.dtype)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = None,
) -> torch.Tensor:
    """Reduce a tensor over all ranks in place, and return it. Collective; see allreduce()."""
    how = average, name, op, prescale_factor, postscale_factor, process_set
    return allreduce_async_(tensor, *how).wait()


def sparse_allreduce_async(
    tensor: torch.Tensor, name: str | None = None, op: Op = Average, process_set: Any = None
) -> Work:
    """Start to reduce a sparse COO tensor over all ranks. Collective; does not block.

    Args:
        tensor: of the same shape, type and number of sparse dimensions on all ranks; need not be coalesced,
            and may be empty on some. With dense dimensions, an element is a row.
        name: ignored; calls are matched by order.
        op, process_set: as for allreduce().

    Returns:
        Work, whose tensor is a new, coalesced sparse tensor.

    Raises:
        TypeError: the tensor is not sparse COO. Only on this rank.
    """
    refuse_process_set(process_set)
    refuse_other(tensor)
    if not tensor.is_sparse:
        raise TypeError("the tensor is dense; a sparse COO one is needed")
    return start_sparse(tensor, op, world())
