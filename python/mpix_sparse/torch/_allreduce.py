# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of tensors, under the names that Horovod's users know."""

from __future__ import annotations

from typing import Any, Callable

import torch

from .. import _coo, _dense, _types
from ._adasum import start_adasum
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._deferred import DeferredCall
from ._half import compare_halves
from ._label import label_call
from ._ops import is_eager, operator
from ._process_set import ranks_of, set_of, set_of_number
from ._progress import watch
from ._tensors import (
    OPS,
    Adasum,
    Average,
    Op,
    as_array,
    choose_op,
    detached,
    elements_of,
    is_plain,
    on_host,
    refuse_average,
    refuse_other,
    scale_,
    sparse_like,
    type_of,
)
from ._work import Work, finished_work
from ._world import World


def _start(
    call: Any, start: Callable[[Any], Any], ranks: World, name: str, is_sparse: bool, count: int, op: Op
) -> Any:
    """Start a call with checked arguments and return its handle. Calls on 16-bit floats start later."""
    if op.name == Average.name and ranks.checks:
        label_call(ranks.plain, op.name)
    if name not in ranks.of_type:
        return start(call)
    types = compare_halves(ranks.plain, name, is_sparse, count, op.reduction)
    handle = DeferredCall(ranks.plain, types, lambda: start(call))
    watch()
    return handle


def start_allreduce(
    tensor: torch.Tensor, output: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float] = (1, 1)
) -> Work:
    """Start to reduce `tensor` into `output`, which may be `tensor`. Tensors may be on a device, not
    contiguous, or sparse COO."""
    refuse_other(tensor)
    if tensor.is_sparse:
        return start_sparse(tensor, op, ranks, output, scales)
    refuse_average(tensor, op)
    if op is Adasum:
        start_adasum([tensor], [output], ranks, scales)
        return finished_work(output)
    source = buffer = on_host(tensor)
    is_direct = is_plain(output)
    if output is not tensor or not is_direct:
        buffer = detached(output) if is_direct else torch.empty_like(source)
    if scales[0] != 1:
        source = scale_(buffer.copy_(source), scales[0])
    name = type_of(source)
    call = _dense_call(source, buffer, name, op, ranks.comm(name))
    handle = _start(call, _dense.start, ranks, name, False, source.numel(), op)

    def finish(_: Any) -> torch.Tensor:
        scale_(buffer, scales[1], op.divisor(ranks.size))
        if not is_direct:
            output.detach().copy_(buffer)
        return output

    return Work(handle, finish, ranks.plain)


def _dense_call(source: torch.Tensor, buffer: torch.Tensor, name: str, op: Op, comm: Any) -> Any:
    """The checked arguments of a call on plain tensors."""
    count = source.numel()
    if source.dtype != buffer.dtype or count != buffer.numel():
        return _dense.DenseArguments(as_array(source), op.reduction, comm, as_array(buffer), 1)
    kinds = _types.datatype(name), _types.operation(op.reduction, name)
    where = source.data_ptr(), buffer.data_ptr(), count, count * _types.item_size(name)
    return _dense.DirectArguments(*where, kinds, comm, (source, buffer), None)


def start_sparse(
    tensor: torch.Tensor,
    op: Op,
    ranks: World,
    output: torch.Tensor | None = None,
    scales: tuple[float, float] = (1, 1),
) -> Work:
    """Start to reduce a sparse COO tensor into a new one; `output`, if given, gets its data."""
    refuse_average(tensor, op)
    if op is Adasum:
        raise TypeError("there is no Adasum of a sparse tensor; make it dense")
    tensor = detached(tensor)
    sparse_dim, name = tensor.sparse_dim(), type_of(tensor)
    count = tensor.shape[:sparse_dim].numel()
    elements = elements_of(tensor, sparse_dim, scales[0])
    call = _coo.CooArguments(elements, count, op.reduction, ranks.comm(name), None)
    handle = _start(call, _coo.start, ranks, name, True, count, op)

    def finish(result: Any) -> torch.Tensor:
        made = sparse_like(tensor, sparse_dim, result, op.divisor(ranks.size), scales[1])
        if output is None:
            return made
        output.data = made
        return output

    return Work(handle, finish, ranks.plain)


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
    scales = prescale_factor, postscale_factor
    return start_allreduce(tensor, tensor, choose_op(average, op), ranks_of(process_set), scales)


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
    ranks = ranks_of(process_set)
    refuse_other(tensor)
    chosen, scales = choose_op(average, op), (prescale_factor, postscale_factor)
    if tensor.is_sparse:
        return start_sparse(tensor, chosen, ranks, scales=scales)
    return start_allreduce(tensor, torch.empty_like(tensor.detach()), chosen, ranks, scales)


def _reduce(
    tensor: torch.Tensor, op: str, prescale: float, postscale: float, process_set: int = 0
) -> torch.Tensor:
    if op not in OPS:
        raise ValueError(f"op is {op!r}; it must be one of {', '.join(OPS)}")
    members = set_of_number(process_set)
    return allreduce_async(tensor, None, None, OPS[op], prescale, postscale, members).wait()


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
    differentiable for Average and Sum. Ranks compare sizes, types, ops and layouts in every call, unless
    MPIX_SPARSE_FORWARD or mpix_sparse.set_info(forward=...), before init(), says otherwise.

    Args:
        tensor: of the same shape and type on all ranks; dense or sparse COO.
        average: the old form of op: Average if True, Sum if False.
        name: ignored; calls are matched by order.
        compression: the type that floats are rounded to before the reduction.
        op: Average (the default), Sum, Min, Max, Product or Adasum. Adasum compares all elements and blocks,
            also in calls ending in _async.
        prescale_factor, postscale_factor: factors before and after the reduction.
        process_set: the ranks that make the call, a ProcessSet; None is all ranks.

    Returns:
        A new tensor.

    Raises:
        TypeError: the compression is unknown, or the tensor's layout or type cannot be reduced with op. Only
            on this rank.
        ValueError: op is unknown, is Average for a tensor of integers, or this rank is not in the process
            set. Only on this rank.
        NotImplementedError: Adasum needs a number of ranks that is a power of two; on all ranks.
        Error: the call failed, on all ranks.
    """
    ranks = ranks_of(process_set)
    refuse_compression(compression)
    refuse_other(tensor)
    chosen, compressed = choose_op(average, op), compression.compress(tensor)
    scales = prescale_factor, postscale_factor
    if tensor.is_sparse:
        reduced = start_sparse(compressed, chosen, ranks, scales=scales).wait()
        return reduced if compressed is tensor else reduced.to(tensor.dtype)
    if is_eager(compressed):  # the operator would take most of the time of a small call
        reduced = start_allreduce(compressed, torch.empty_like(compressed), chosen, ranks, scales).wait()
        return reduced if compressed is tensor else reduced.to(tensor.dtype)
    number = set_of(process_set).process_set_id
    return _allreduce(compressed, chosen.name, *scales, number).to(tensor.dtype)


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
    ranks = ranks_of(process_set)
    refuse_other(tensor)
    if not tensor.is_sparse:
        raise TypeError("the tensor is dense; a sparse COO one is needed")
    return start_sparse(tensor, op, ranks)
