# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-scatter of dense and sparse tensors. Dense ones are reduced by MPI, since each rank needs only its
part. Sparse ones are reduced by this library, and each rank keeps its part."""

from __future__ import annotations

import ctypes
from typing import Sequence

import torch

from .. import _types
from .._library import library
from ._allreduce import start_sparse
from ._work import Work
from ._collectives import MAX_ELEMENTS, agree, elements, overlap, replace, start_call
from ._tensors import Op, is_plain, on_host, refuse_average, scale_, sparse_of, type_of
from ._world import World

HALVES = torch.float16, torch.bfloat16  # MPI cannot add them; they are added in 32 bits


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
    problem = _list_problem(output, inputs, ranks) or _op_problem(output, counts, op, factor)
    agree(_describe(output, op, counts), problem, ranks.plain)
    if output.is_sparse:
        return _reduce_sparse(output, _joined(inputs), op, factor, ranks)
    flat = torch.cat([on_host(piece).view(-1) for piece in inputs])
    return _reduce_dense(output, flat, counts, op, factor, ranks)


def reduce_scatter_tensor(
    output: torch.Tensor, tensor: torch.Tensor, op: Op, factor: float, ranks: World
) -> Work:
    """Start to reduce a tensor, of which each rank gets an equal part along its first dimension. Collective;
    blocks to compare the arguments. Raises as reduce_scatter() does."""
    counts = [output.numel()] * ranks.size
    problem = _tensor_problem(output, tensor, ranks) or _op_problem(output, counts, op, factor)
    agree(_describe(output, op, counts), problem, ranks.plain)
    if output.is_sparse:
        return _reduce_sparse(output, tensor, op, factor, ranks)
    return _reduce_dense(output, on_host(tensor).view(-1), counts, op, factor, ranks)


def _describe(output: torch.Tensor, op: Op, counts: Sequence[int]) -> str:
    """The arguments that must be equal on all ranks."""
    layout = "sparse" if output.is_sparse else "dense"
    return f"{op.name} of {layout} {type_of(output)}, {list(counts)} elements for the ranks"


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


def _op_problem(output: torch.Tensor, counts: Sequence[int], op: Op, factor: float) -> str:
    """The error in the reduction or in the tensors' layout, type or size; empty if there is none."""
    if output.layout not in (torch.strided, torch.sparse_coo):
        return f"a tensor of layout {output.layout} cannot be reduced; dense and sparse COO ones can"
    if output.is_sparse and output.dim() == 0:
        return "a sparse tensor without dimensions cannot be split"
    if not output.is_sparse and sum(counts) > MAX_ELEMENTS:
        return f"{sum(counts)} elements are too many for a call; at most {MAX_ELEMENTS} fit"
    if factor != 1 and not (output.is_floating_point() or output.is_complex()):
        return f"there is no PREMUL_SUM of {type_of(output)}; use SUM"
    try:
        refuse_average(output, op)
        _types.datatype(type_of(output))
        _types.operation(op.reduction, type_of(output))
    except (TypeError, ValueError) as reason:
        return str(reason)
    return ""


def _reduce_dense(
    output: torch.Tensor, flat: torch.Tensor, counts: list[int], op: Op, factor: float, ranks: World
) -> Work:
    source = flat.float() if flat.dtype in HALVES else flat
    if factor != 1:
        source = scale_(source.clone() if source is flat else source, factor)
    direct = is_plain(output) and source.dtype == output.dtype and not overlap(source, output)
    found = output.detach() if direct else source.new_empty(counts[ranks.rank])
    pointer, _, datatype = elements(source)
    where = ctypes.c_void_p(found.data_ptr())
    reduction = _types.operation(op.reduction, type_of(source))
    keep = source, found, (ctypes.c_int * len(counts))(*counts)

    def finish() -> torch.Tensor:
        scale_(found, 1, op.divisor(ranks.size))
        if not direct:
            output.detach().copy_(found.view(output.shape))
        return output

    arguments = pointer, where, keep[2], datatype, reduction, ranks.plain
    return start_call(library.MPI_Ireduce_scatter, *arguments, keep=keep, finish=finish)


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


def _reduce_sparse(output: torch.Tensor, tensor: torch.Tensor, op: Op, factor: float, ranks: World) -> Work:
    work, extent = start_sparse(tensor, op, ranks, scales=(factor, 1)), output.shape[0]

    def finish(total: torch.Tensor) -> torch.Tensor:
        indices, first = total._indices(), ranks.rank * extent
        bounds = torch.tensor([first, first + extent], device=indices.device)
        low, high = torch.searchsorted(indices[0].contiguous(), bounds).tolist()
        own = indices[:, low:high].clone()
        own[0] -= first
        return replace(output, own, total._values()[low:high].clone())._coalesced_(True)

    return Work(work, finish)
