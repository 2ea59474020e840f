# SPDX-License-Identifier: BSD-3-Clause
"""All-to-all of dense and sparse tensors: each rank sends a tensor of its own to every rank."""

from __future__ import annotations

import ctypes
import itertools
import zlib
from typing import Any, Callable, Sequence

import torch

from .. import _mpi, _types
from .._library import library
from ._work import Work, WorkGroup
from ._collectives import (
    MAX_ELEMENTS,
    elements,
    gather_numbers,
    overlap,
    put_back,
    refuse,
    replace,
    start_call,
)
from ._tensors import on_host, type_of


def all_to_all(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], comm: Any) -> Work:
    """Start to send inputs[rank] to each rank, whose outputs[this rank] has its size. Collective; blocks to
    compare sizes.

    Args:
        outputs: overwritten; all dense or all sparse COO, like the inputs. Sparse ones have the shapes of the
            tensors they receive, and may have other elements before.
        inputs: one tensor for each rank; sizes may differ, also to 0.

    Raises:
        ValueError: the lists are wrong on a rank, or do not fit those of another; on all ranks.
    """
    ranks = _mpi.size(comm)
    problem = _list_problem("output", outputs, inputs, ranks) or _list_problem("input", inputs, inputs, ranks)
    if not problem and inputs[0].is_sparse:
        return _exchange_sparse(outputs, inputs, comm)
    sent, expected = ([piece.numel() for piece in pieces] for pieces in (inputs, outputs))
    problem = problem or _size_problem(inputs, outputs)
    _agree(problem, sent, expected, type_of(inputs[0]) if inputs else "", comm)
    flat = torch.cat([on_host(piece).view(-1) for piece in inputs])
    made = flat.new_empty(sum(expected))

    def finish() -> Sequence[torch.Tensor]:
        for piece, output in zip(made.split(expected), outputs):
            output.detach().copy_(piece.view(output.shape))
        return outputs

    return _exchange(made, expected, flat, sent, comm, finish)


def all_to_all_single(
    output: torch.Tensor,
    tensor: torch.Tensor,
    output_splits: Sequence[int],
    input_splits: Sequence[int],
    comm: Any,
) -> Work:
    """Start to send a part of a dense tensor to each rank, and to concatenate the parts that arrive.
    Collective; blocks to compare sizes.

    Args:
        output: overwritten.
        tensor: split along its first dimension.
        output_splits, input_splits: lengths of the parts for each rank along the first dimension; empty for
            equal parts.

    Raises:
        ValueError: the arguments are wrong on a rank, or do not fit those of another; on all ranks.
    """
    ranks, problem = _mpi.size(comm), ""
    if (tensor.layout, output.layout) != (torch.strided, torch.strided):
        problem = "all_to_all_single needs dense tensors; sparse ones can be sent by all_to_all"
    elif output.dtype != tensor.dtype:
        problem = f"the output is of type {type_of(output)}, and the input of {type_of(tensor)}"
    problem = problem or _split_problem("output", output, output_splits, ranks)
    problem = problem or _split_problem("input", tensor, input_splits, ranks)
    problem = problem or _size_problem([tensor], [output])
    expected = [] if problem else _counts(output, output_splits, ranks)
    sent = [] if problem else _counts(tensor, input_splits, ranks)
    _agree(problem, sent, expected, type_of(tensor), comm)
    buffer = on_host(output)
    finish = lambda: put_back(buffer, output)  # noqa: E731
    source = on_host(tensor)
    source = source.clone() if overlap(source, buffer) else source
    return _exchange(buffer, expected, source, sent, comm, finish)


def _list_problem(
    what: str, pieces: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], ranks: int
) -> str:
    """The error in a list that must have a tensor for each rank; empty if there is none."""
    if len(pieces) != ranks:
        return f"the {what} list has {len(pieces)} tensors; it needs one for each of {ranks} ranks"
    for piece in pieces:
        if piece.layout not in (torch.strided, torch.sparse_coo):
            return f"the {what} list has a tensor of layout {piece.layout}; it needs dense or sparse COO ones"
        if not inputs or (piece.layout, piece.dtype) != (inputs[0].layout, inputs[0].dtype):
            return "the tensors of the lists differ in type or layout"
    return ""


def _size_problem(*lists: Sequence[torch.Tensor]) -> str:
    """The error in the type of tensors, or in the number of elements of a list; empty if there is none."""
    for tensors in lists:
        for tensor in tensors:
            if not _types.is_known(type_of(tensor)):
                return f"tensors of type {type_of(tensor)} cannot be sent"
        count = sum(tensor.numel() for tensor in tensors)
        if count > MAX_ELEMENTS:
            return f"{count} elements are too many for a call; at most {MAX_ELEMENTS} fit"
    return ""


def _split_problem(what: str, tensor: torch.Tensor, splits: Sequence[int], ranks: int) -> str:
    """The error in the parts of a tensor; empty if there is none."""
    length = tensor.shape[0] if tensor.dim() else 0
    if not splits:
        short = f"the {what} tensor has {length} rows, which {ranks} ranks cannot share evenly"
        return short + "; pass split sizes" if length % ranks or not tensor.dim() else ""
    if len(splits) != ranks or min(splits) < 0 or sum(splits) != length:
        return f"the {what} split sizes are {list(splits)}; they must be {ranks} that add up to {length}"
    return ""


def _counts(tensor: torch.Tensor, splits: Sequence[int], ranks: int) -> list[int]:
    """The number of elements for each rank."""
    row = tensor.shape[1:].numel()
    return [length * row for length in splits or [tensor.shape[0] // ranks] * ranks]


_WRONG = [-1, 0, 0]  # what a rank with a problem sends in place of numbers


def _agree(problem: str, sent: list[int], expected: list[int], kind: str, comm: Any) -> None:
    """Compare the numbers of elements that ranks send and expect. Collective; blocks.

    Raises:
        ValueError: they differ somewhere, or a rank reports a problem; on all ranks.
    """
    ranks, checksum = _mpi.size(comm), zlib.crc32(f"dense {kind}".encode())
    rows = [_WRONG] * ranks if problem else [[count, 0, checksum] for count in sent]
    for rank, (count, _, their_checksum) in enumerate(_swap(rows, comm)):
        if count < 0 or problem:
            continue
        if their_checksum != checksum:
            problem = f"the tensors are dense ones of type {kind}, unlike those on rank {rank}"
        elif count != expected[rank]:
            problem = f"rank {rank} sends {count} elements, and the output has {expected[rank]} for them"
    _refuse_together(problem, comm)


def _refuse_together(problem: str, comm: Any) -> None:
    """Raise ValueError on all ranks if one has a problem. Collective; blocks."""
    wrong = gather_numbers([int(bool(problem))], comm)
    refuse(problem)
    for rank, (there,) in enumerate(wrong):
        if there:
            raise ValueError(f"the tensors on rank {rank} do not fit the call")


def _swap(rows: Sequence[Sequence[int]], comm: Any) -> list[list[int]]:
    """Send a row of numbers to each rank; returns the rows that arrive. Collective; blocks."""
    mine = torch.tensor(rows, dtype=torch.int64)
    theirs = torch.empty_like(mine)
    row = mine[0].numel()
    arguments = *elements(mine, row), *elements(theirs, row), comm
    return start_call(library.MPI_Ialltoall, *arguments, keep=(mine, theirs), finish=theirs.tolist).wait()


def _exchange(
    made: torch.Tensor,
    expected: Sequence[int],
    flat: torch.Tensor,
    sent: Sequence[int],
    comm: Any,
    finish: Callable[[], Any],
) -> Work:
    """Start to send parts of a buffer, one behind the other, and to receive parts likewise."""
    to, arriving = _layout(sent), _layout(expected)
    source, _, datatype = elements(flat)
    arguments = source, *to, datatype, elements(made)[0], *arriving, datatype, comm
    keep = flat, made, to, arriving
    return start_call(library.MPI_Ialltoallv, *arguments, keep=keep, finish=finish)


def _layout(counts: Sequence[int]) -> tuple[Any, Any]:
    """Counts and displacements for MPI."""
    kind = ctypes.c_int * len(counts)
    return kind(*counts), kind(*itertools.accumulate([0, *counts[:-1]]))


def _exchange_sparse(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], comm: Any) -> Work:
    arriving = _agree_on_sparse(outputs, inputs, comm)
    parts = [piece._indices() for piece in inputs], [piece._values() for piece in inputs]
    flats = [torch.cat([on_host(part).view(-1) for part in kind]) for kind in parts]
    sent = [[part.numel() for part in kind] for kind in parts]
    shapes = [(dims, nnz) for nnz, dims in arriving], [
        (nnz, *output.shape[dims:]) for output, (nnz, dims) in zip(outputs, arriving)
    ]
    expected = [[torch.Size(shape).numel() for shape in kind] for kind in shapes]
    works = [
        _start_parts(flat, *counts, kind, comm) for flat, *counts, kind in zip(flats, sent, expected, shapes)
    ]

    def finish(gathered: Any) -> Sequence[torch.Tensor]:
        return [replace(output, *pair) for output, *pair in zip(outputs, *gathered)]

    return Work(WorkGroup(works), finish)


def _start_parts(
    flat: torch.Tensor, sent: Sequence[int], expected: Sequence[int], shapes: Sequence[Any], comm: Any
) -> Work:
    """Start an exchange of which the result is a new tensor of each shape."""
    made = flat.new_empty(sum(expected))

    def finish() -> list[torch.Tensor]:
        return [part.view(shape).clone() for part, shape in zip(made.split(list(expected)), shapes)]

    return _exchange(made, expected, flat, sent, comm, finish)


def _agree_on_sparse(
    outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], comm: Any
) -> list[tuple[int, int]]:
    """Compare types and shapes with the other ranks' sparse tensors. Collective; blocks.

    Returns:
        For each rank the number of elements that it sends, and of their sparse dimensions.

    Raises:
        ValueError: they differ, or a rank reports a problem; on all ranks.
    """
    parts = [piece._indices() for piece in inputs], [piece._values() for piece in inputs]
    problem = _size_problem(*parts)
    rows = [[piece._nnz(), piece.sparse_dim(), _checksum(piece)] for piece in inputs]
    found = _swap([_WRONG] * len(rows) if problem else rows, comm)
    numbers = 0
    for output, (rank, (nnz, dims, checksum)) in zip(outputs, enumerate(found)):
        if nnz >= 0 and checksum != _checksum(output):
            ours = _description(output)
            problem = problem or f"output {rank} is {ours}, unlike the tensor from rank {rank}"
        numbers += nnz * max(dims, output.shape[dims:].numel())
    if numbers > MAX_ELEMENTS:
        problem = problem or f"{numbers} elements are too many for a call; at most {MAX_ELEMENTS} fit"
    _refuse_together(problem, comm)
    return [(nnz, dims) for nnz, dims, _ in found]


def _description(tensor: torch.Tensor) -> str:
    return f"a sparse {type_of(tensor)} of shape {tuple(tensor.shape)}"


def _checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(_description(tensor).encode())
