# SPDX-License-Identifier: BSD-3-Clause
"""Reduction of dense and sparse tensors of which each rank keeps a piece. reducescatter() and
torch.distributed's reduce_scatter are made of it.

MPI_Ireduce_scatter reduces dense tensors, since each rank needs only its piece; 16-bit floats in 32 bits,
since MPI cannot add them. Sparse tensors are reduced by reduce_scatter_coo()."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Sequence

import torch

from .. import _types
from .._coo import CooArguments
from .._halves import start_reduce_scatter
from .._library import library
from .._pending import PendingCall
from ._agree import agree
from ._checked import CheckedCall
from ._collectives import replace
from ._deferred import DeferredCall
from ._nonblocking import MAX_ELEMENTS, overlap, start_call
from ._progress import watch
from ._tensors import (
    Op,
    coalesced_of,
    detached,
    elements_of,
    is_plain,
    on_host,
    refuse_average,
    scale_,
    sparse_like,
    sparse_of,
    type_of,
)
from ._work import Work, finished_work
from ._world import World

HALVES = torch.float16, torch.bfloat16


def reduction_problem(tensor: torch.Tensor, count: int, op: Op, factor: float = 1) -> str:
    """The error in the reduction of `count` elements like those of a tensor; empty if there is none."""
    if tensor.layout not in (torch.strided, torch.sparse_coo):
        return f"a tensor of layout {tensor.layout} cannot be reduced; dense and sparse COO ones can"
    if tensor.is_sparse and tensor.dim() == 0:
        return "a sparse tensor without dimensions cannot be split"
    if not tensor.is_sparse and count > MAX_ELEMENTS:
        return f"{count} elements are too many for a call; at most {MAX_ELEMENTS} fit"
    if factor != 1 and not (tensor.is_floating_point() or tensor.is_complex()):
        return f"there is no PREMUL_SUM of {type_of(tensor)}; use SUM"
    try:
        refuse_average(tensor, op)
        _types.datatype(type_of(tensor))
        _types.operation(op.reduction, type_of(tensor))
    except (TypeError, ValueError) as reason:
        return str(reason)
    return ""


def start_dense(
    source: torch.Tensor,
    counts: Sequence[int],
    op: Op,
    ranks: World,
    scales: tuple[float, float] = (1, 1),
    output: torch.Tensor | None = None,
) -> Work:
    """Start to reduce a dense tensor, of which each rank keeps counts[rank] elements.

    Args:
        counts: the same on all ranks.
        scales: factors before and after the reduction.
        output: overwritten with the elements; None for a new tensor on the host.
    """
    flat = on_host(source).view(-1)
    wide = flat.float() if flat.dtype in HALVES else flat
    if scales[0] != 1:
        wide = scale_(wide.clone() if wide is flat else wide, scales[0])
    direct = output is not None and is_plain(output) and wide is flat and not overlap(wide, output)
    found = output.detach() if direct else wide.new_empty(counts[ranks.rank])
    table = (ctypes.c_int * len(counts))(*counts)
    buffers = (ctypes.c_void_p(each.data_ptr()) for each in (wide, found))
    how = _types.datatype(type_of(wide)), _types.operation(op.reduction, type_of(wide)), ranks.plain

    def finish() -> torch.Tensor:
        made = scale_(found, scales[1], op.divisor(ranks.size)).to(source.dtype)
        if output is not None and not direct:
            output.detach().copy_(made.view(output.shape))
        return made if output is None else output

    keep = wide, found, table
    return start_call(library.MPI_Ireduce_scatter, *buffers, table, *how, keep=keep, finish=finish)


def _padded(tensor: torch.Tensor, ranks: World) -> torch.Tensor:
    """A sparse tensor with as many rows for each rank, where the first ranks have one more: the share of a
    rank with fewer ends with a row without elements."""
    share, longer = divmod(tensor.shape[0], ranks.size)
    if share == 0 or longer == 0:
        return tensor
    indices = tensor._indices().clone()
    before = torch.div(indices[0] - longer * (share + 1), share, rounding_mode="floor")
    indices[0] += before.clamp_(min=0)
    shape = ranks.size * (share + 1), *tensor.shape[1:]
    return sparse_of(indices, tensor._values(), tensor, shape)


def start_rows(tensor: torch.Tensor, op: Op, ranks: World, scales: tuple[float, float] = (1, 1)) -> Work:
    """Start to reduce a sparse tensor, whose arguments ranks have compared. Returns a new tensor with this
    rank's share of the rows; the first ranks have one more if rows are not a multiple."""
    rows, sparse_dim, name = tensor.shape[0], tensor.sparse_dim(), type_of(tensor)
    own = rows // ranks.size + (ranks.rank < rows % ranks.size)
    share = -(-rows // ranks.size)
    padded = _padded(detached(tensor), ranks)
    columns = tensor.shape[1:sparse_dim].numel()
    elements = elements_of(padded, sparse_dim, scales[0])
    call = CooArguments(elements, padded.shape[0] * columns, op.reduction, ranks.comm(name), None)

    def finish(result: Any) -> torch.Tensor:
        made = sparse_like(padded, sparse_dim, result, op.divisor(ranks.size), scales[1])
        made._indices()[0] -= ranks.rank * share
        shape = own, *tensor.shape[1:]
        return coalesced_of(made._indices(), made._values(), tensor, shape)

    def start(make: Callable[..., PendingCall]) -> Any:
        return start_reduce_scatter(call, max(share * columns, 1), make)

    text = f"reduce_scatter({op.name}, sparse {name} of shape {tuple(tensor.shape)})"
    return Work(_start_in_order(start, name, text, ranks), finish, ranks.plain)


def _start_in_order(
    start: Callable[[Callable[..., PendingCall]], Any], name: str, text: str, ranks: World
) -> Any:
    """Start a call whose arguments ranks have compared; one on 16-bit floats after earlier ones, which may
    start later."""
    if ranks.comm(name) is ranks.plain:
        return start(functools.partial(CheckedCall, ranks, (str, text)))
    handle = DeferredCall(ranks.plain, finished_work(None), lambda: start(PendingCall))
    watch()
    return handle


def reduce_scatter(
    output: torch.Tensor, inputs: Sequence[torch.Tensor], op: Op, factor: float, ranks: World
) -> Work:
    """Start to reduce lists of tensors, one for each rank, of which each rank gets its own. Dense tensors may
    differ in size within the list; sparse ones have the output's shape. Collective; blocks to compare the
    arguments.

    Args:
        output: overwritten with the sum of all ranks' inputs[rank].
        inputs: one tensor for each rank, all dense or all sparse COO.
        op, factor: the reduction, and the factor of the inputs before it.

    Raises:
        ValueError: the arguments are wrong on a rank or differ between ranks; on all ranks.
    """
    counts = [piece.numel() for piece in inputs]
    _agree(output, counts, _list_problem(output, inputs, ranks), op, factor, ranks)
    whole = _joined(inputs) if output.is_sparse else torch.cat([on_host(piece).view(-1) for piece in inputs])
    return _start(output, whole, counts, op, factor, ranks)


def reduce_scatter_tensor(
    output: torch.Tensor, tensor: torch.Tensor, op: Op, factor: float, ranks: World
) -> Work:
    """Start to reduce a tensor, of which each rank gets an equal part along its first dimension. Collective;
    blocks to compare the arguments. Raises as reduce_scatter() does."""
    counts = [output.numel()] * ranks.size
    _agree(output, counts, _tensor_problem(output, tensor, ranks), op, factor, ranks)
    return _start(output, tensor, counts, op, factor, ranks)


def _start(
    output: torch.Tensor, whole: torch.Tensor, counts: Sequence[int], op: Op, factor: float, ranks: World
) -> Work:
    if not output.is_sparse:
        return start_dense(whole, counts, op, ranks, (factor, 1), output)
    work = start_rows(whole, op, ranks, (factor, 1))

    def finish(own: torch.Tensor) -> torch.Tensor:
        return replace(output, own._indices(), own._values())._coalesced_(True)

    return Work(work, finish)


def _agree(
    output: torch.Tensor, counts: Sequence[int], problem: str, op: Op, factor: float, ranks: World
) -> None:
    """Compare the arguments with those of the other ranks. Collective; blocks."""
    kind = f"{'sparse' if output.is_sparse else 'dense'} {type_of(output)}"
    problem = problem or reduction_problem(output, sum(counts), op, factor)
    agree(f"reduce_scatter({op.name}, {kind} of {list(counts)} elements for the ranks)", problem, ranks)


def _list_problem(output: torch.Tensor, inputs: Sequence[torch.Tensor], ranks: World) -> str:
    """The error in a list of inputs; empty if there is none."""
    if len(inputs) != ranks.size:
        return f"the input list has {len(inputs)} tensors; it needs one for each of {ranks.size} ranks"
    for piece in inputs:
        if (piece.layout, piece.dtype) != (output.layout, output.dtype):
            return "the tensors of the input list and the output differ in type or layout"
        if piece.is_sparse and piece.shape != output.shape:
            return f"the input list has a sparse tensor of {tuple(piece.shape)}, not {tuple(output.shape)}"
    if len({piece.sparse_dim() for piece in inputs if piece.is_sparse}) > 1:
        return "the sparse tensors of the input list differ in their number of sparse dimensions"
    own = inputs[ranks.rank].numel()
    return "" if own == output.numel() else f"the output has {output.numel()} elements; its input has {own}"


def _tensor_problem(output: torch.Tensor, tensor: torch.Tensor, ranks: World) -> str:
    """The error in an input that is to be split evenly; empty if there is none."""
    if (tensor.layout, tensor.dtype) != (output.layout, output.dtype):
        return "the input and the output tensor differ in type or layout"
    if tensor.numel() != output.numel() * ranks.size:
        return (
            f"the input has {tensor.numel()} elements; "
            f"for {ranks.size} outputs of {output.numel()} it needs {output.numel() * ranks.size}"
        )
    if tensor.is_sparse and tensor.shape[1:] != output.shape[1:]:
        return f"the sparse input has shape {tuple(tensor.shape)}, and the output {tuple(output.shape)}"
    return ""


def _joined(pieces: Sequence[torch.Tensor]) -> torch.Tensor:
    """Sparse tensors of one shape, one behind the other along the first dimension."""
    indices = []
    for i, piece in enumerate(pieces):
        moved = piece._indices().clone()
        moved[0] += i * piece.shape[0]
        indices.append(moved)
    shape = len(pieces) * pieces[0].shape[0], *pieces[0].shape[1:]
    values = torch.cat([piece.detach()._values() for piece in pieces])
    return sparse_of(torch.cat(indices, 1), values, values.new_empty(()).expand(shape))
