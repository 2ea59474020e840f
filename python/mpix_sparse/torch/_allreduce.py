# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce of tensors, under the names that Horovod's users know."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable

import torch

from .. import _coo, _mpi, _types
from .._library import library
from .._pending import PendingCall
from ._adasum import start_adasum
from ._agree import refuse, start_deferred
from ._blocking import reduce_dense, reduce_sparse, sparse_arguments, sparse_kind, take_result
from ._checked import CheckedCall
from ._collective import collective
from ._compression import Compression, Compressor
from ._compressor import refuse_compression
from ._labels import dense_label, describe_dense, describe_sparse, shape_group, sparse_label
from ._ops import is_eager, operator, sparse_function
from ._process_set import ranks_of, set_of, set_of_number
from ._tensors import (
    OPS,
    Adasum,
    Average,
    Op,
    choose_op,
    copy_result,
    detached,
    elements_of,
    is_plain,
    on_host,
    refuse_average,
    refuse_factors,
    refuse_other,
    scale_,
    sparse_like,
    type_of,
)
from ._work import Work, finished_work
from ._world import World


def _start(
    start: Callable[[Callable[..., PendingCall]], Any], ranks: World, name: str, text: Any, label: Any
) -> Any:
    """Start a call and return its handle. Ranks whose tensors have another type than 16-bit floats are not on
    their communicator, so these calls begin with an agreement.

    Args:
        start: starts the call, which it makes by the argument from what a PendingCall is made from.
        name: the type of the elements.
        text: the description, as for CheckedCall.
        label: of the call of the C library; None if it needs none.
    """
    with ranks.lock:
        ranks.last = comm = ranks.comm(name)
        if comm is not ranks.plain:
            describe, *how = text
            return (
                start_deferred(describe(*how), lambda: start(PendingCall), ranks)
                if ranks.checks
                else start(PendingCall)
            )
        if label is not None and ranks.checks:
            _mpi.check(library.MPIX_Sparse_comm_set_label(comm, label))
        return start(functools.partial(CheckedCall, ranks, text))


def start_allreduce(
    tensor: torch.Tensor,
    output: torch.Tensor | None,
    op: Op,
    ranks: World,
    scales: tuple[float, float] = (1, 1),
    group: tuple[Any, Any] | None = None,
) -> Work:
    """Start to reduce `tensor` into `output`, which may be `tensor`; None makes a new tensor. Tensors may be
    on a device, not contiguous, or sparse COO. The call of the C library is in place on all ranks, since it
    compares that.

    Args:
        group: the description and the label of a call of another function than allreduce().
    """
    refuse_other(tensor)
    refuse_factors(tensor, scales)
    if tensor.is_sparse:
        return start_sparse(tensor, op, ranks, output, scales, group)
    refuse_average(tensor, op)
    if op is Adasum:
        made = torch.empty_like(tensor.detach()) if output is None else output
        start_adasum([tensor], [made], ranks, scales)
        return finished_work(made)
    if not is_plain(tensor):
        buffer, target = on_host(tensor), torch.empty_like(tensor.detach()) if output is None else output
    elif output is tensor:
        buffer, target = detached(tensor), None
    else:
        buffer, target = detached(tensor).clone(), output
    if scales[0] != 1:
        scale_(buffer, scales[0])
    name, count = type_of(buffer), buffer.numel()
    text, label = group or ((describe_dense, op.name, name, count), dense_label(op))
    handle = _start_in_place(buffer, name, op.reduction, ranks, text, label)
    divisor = op.divisor(ranks.size)

    def finish(_: Any) -> torch.Tensor:
        if divisor != 1 or scales[1] != 1:
            scale_(buffer, scales[1], divisor)
        if target is not None:
            target.detach().copy_(buffer)
            return target
        return buffer if output is None else output

    return Work(handle, finish, ranks.plain)


def _start_in_place(buffer: torch.Tensor, name: str, op: str, ranks: World, text: Any, label: Any) -> Any:
    """Start a call on a plain tensor."""
    where = _mpi.IN_PLACE, ctypes.c_void_p(buffer.data_ptr()), ctypes.c_longlong(buffer.numel())
    how = *where, _types.datatype(name), _types.operation(op, name), ranks.comm(name)

    def start(make: Callable[..., PendingCall]) -> Any:
        pending = make(buffer, None)
        return pending.begin(library.MPIX_Isparse_allreduce(*how, ctypes.byref(pending.request)))

    return _start(start, ranks, name, text, label)


def _start_plain(
    tensor: torch.Tensor, op: Op, ranks: World, output: Any, scales: tuple[float, float], group: Any
) -> Work | None:
    """As start_sparse(), in two thirds of the time, for a tensor in host memory that needs no copy. Returns
    None for other tensors, or if an argument is wrong; no call has started then."""
    sparse_dim = tensor.sparse_dim()
    kind = sparse_kind(tensor.dtype, op.name, tensor.shape, sparse_dim)
    prepared = None if kind is None else sparse_arguments(tensor, sparse_dim, scales[0], kind)
    if kind is None or prepared is None:
        return None
    (pointers, keep), (text, label), result = prepared, group or (kind.text, kind.label), take_result()
    with ranks.lock:
        ranks.last = comm = ranks.plain
        if label is not None and ranks.checks:
            _mpi.check(library.MPIX_Sparse_comm_set_label(comm, label))
        pending = CheckedCall(ranks, text, (keep, result))
        where = result.pointer, ctypes.byref(pending.request)
        handle = pending.begin(library.MPIX_Isparse_allreduce_coo(*pointers, *kind.types, comm, *where))

    def finish(_: Any) -> torch.Tensor:
        contents = result.contents()
        divisor = op.divisor(ranks.size)
        made = copy_result(tensor, kind.numbers, kind.row, contents, divisor, scales[1])
        result.give_back(contents[0] * kind.bytes)
        if output is None:
            return made
        output.data = made
        return output

    return Work(handle, finish, comm)


def start_sparse(
    tensor: torch.Tensor,
    op: Op,
    ranks: World,
    output: torch.Tensor | None = None,
    scales: tuple[float, float] = (1, 1),
    group: tuple[Any, Any] | None = None,
) -> Work:
    """Start to reduce a sparse COO tensor into a new one; `output`, if given, gets its data. See
    start_allreduce() for `group`."""
    refuse_factors(tensor, scales)
    tensor = detached(tensor)
    if (made := _start_plain(tensor, op, ranks, output, scales, group)) is not None:
        return made
    refuse_average(tensor, op)
    if op is Adasum:
        raise TypeError("there is no Adasum of a sparse tensor; make it dense")
    if tensor.sparse_dim() == 0:
        raise ValueError("a sparse tensor without sparse dimensions cannot be reduced; make it dense")
    sparse_dim, name, shape = tensor.sparse_dim(), type_of(tensor), tensor.shape
    elements = elements_of(tensor, sparse_dim, scales[0])
    arguments = _coo.CooArguments(elements, shape[:sparse_dim].numel(), op.reduction, ranks.comm(name), None)
    refuse(elements.problem)
    text = describe_sparse, op.name, name, shape, sparse_dim
    how = group or (text, sparse_label(op, shape, sparse_dim))
    handle = _start(functools.partial(_coo.start, arguments), ranks, name, *how)

    def finish(result: Any) -> torch.Tensor:
        made = sparse_like(tensor, sparse_dim, result, op.divisor(ranks.size), scales[1])
        if output is None:
            return made
        output.data = made
        return output

    return Work(handle, finish, ranks.plain)


def _reduce_sparse(tensor: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float]) -> torch.Tensor:
    """Reduce a sparse COO tensor into a new one; blocks."""
    refuse_factors(tensor, scales)
    made = reduce_sparse(tensor, op, ranks, scales)
    return start_sparse(tensor, op, ranks, None, scales).wait() if made is None else made


def _reduce_dense(
    tensor: torch.Tensor, output: torch.Tensor | None, op: Op, ranks: World, scales: tuple[float, float]
) -> torch.Tensor:
    """As start_allreduce(), for a dense tensor; blocks."""
    refuse_factors(tensor, scales)
    made = reduce_dense(tensor, output is tensor, op, ranks, scales)
    if made is not None:
        return made
    return start_allreduce(tensor, output, op, ranks, scales, shape_group(tensor, op)).wait()


@collective
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
    ranks = ranks_of(process_set)
    refuse_other(tensor)
    chosen, scales = choose_op(average, op), (prescale_factor, postscale_factor)
    return start_allreduce(tensor, tensor, chosen, ranks, scales, shape_group(tensor, chosen))


@collective
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
    return start_allreduce(tensor, None, chosen, ranks, scales, shape_group(tensor, chosen))


@collective
def _reduce_new(tensor: torch.Tensor, op: Op, scales: tuple[float, float], process_set: Any) -> torch.Tensor:
    """Reduce a tensor into a new one; blocks."""
    ranks = ranks_of(process_set)
    refuse_other(tensor)
    if tensor.is_sparse:
        return _reduce_sparse(tensor, op, ranks, scales)
    return _reduce_dense(tensor, None, op, ranks, scales)


def _reduce(
    tensor: torch.Tensor, op: str, prescale: float, postscale: float, process_set: int = 0
) -> torch.Tensor:
    if op not in OPS:
        raise ValueError(f"op is {op!r}; it must be one of {', '.join(OPS)}")
    return _reduce_new(tensor, OPS[op], (prescale, postscale), set_of_number(process_set))


_allreduce = operator(_reduce)
_allreduce_sparse = sparse_function(_reduce_new)


@collective
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
    differentiable for Average and Sum, of sparse tensors too. Ranks compare shapes, types, ops and layouts in
    every call, unless MPIX_SPARSE_FORWARD or mpix_sparse.set_info(forward=...), before init(), says
    otherwise.

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
        TypeError: the compression is unknown, or the tensor's layout or type cannot be reduced with op.
        ValueError: op is unknown, is Average for a tensor of integers, or this rank is not in the process
            set; the last one only on this rank.
        NotImplementedError: Adasum needs a number of ranks that is a power of two; on all ranks.
        Error: the call failed, on all ranks. If another rank has an error in its arguments, or makes another
            call, it is a ValueError too; not if an index is outside a tensor of one sparse dimension.
    """
    ranks = ranks_of(process_set)
    refuse_other(tensor)
    chosen, compressed = choose_op(average, op), tensor
    if compression is not Compression.none:
        refuse_compression(compression)
        compressed = compression.compress(tensor)
    scales = prescale_factor, postscale_factor
    if tensor.is_sparse:
        if compressed.requires_grad and torch.is_grad_enabled():
            reduced = _allreduce_sparse(compressed, chosen, scales, process_set)
        else:
            reduced = _reduce_sparse(compressed, chosen, ranks, scales)
        return reduced if compressed is tensor else reduced.to(tensor.dtype)
    if is_eager(compressed):  # the operator would take most of the time of a small call
        reduced = _reduce_dense(compressed, None, chosen, ranks, scales)
        return reduced if compressed is tensor else reduced.to(tensor.dtype)
    number = set_of(process_set).process_set_id
    return _allreduce(compressed, chosen.name, *scales, number).to(tensor.dtype)


@collective
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
    scales = prescale_factor, postscale_factor
    chosen, ranks = choose_op(average, op), ranks_of(process_set)
    refuse_other(tensor)
    return _reduce_dense(tensor, tensor, chosen, ranks, scales)


@collective
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
        TypeError: the tensor is not sparse COO.
    """
    ranks = ranks_of(process_set)
    refuse_other(tensor)
    if not tensor.is_sparse:
        raise TypeError("the tensor is dense; a sparse COO one is needed")
    return start_sparse(tensor, op, ranks)
