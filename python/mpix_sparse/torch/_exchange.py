# SPDX-License-Identifier: BSD-3-Clause
"""Exchange of dense and sparse pieces: each rank sends a piece of its own to every rank. alltoall() and
torch.distributed's all_to_all are made of it. Numbers go first, so that each rank knows the size of what it
receives, and errors are exceptions on all ranks."""

from __future__ import annotations

import operator
import zlib
from typing import Any, Callable, Sequence

import torch

from .. import _types
from .._library import library
from ._agree import agree
from ._collectives import replace
from ._nonblocking import MAX_ELEMENTS, elements, layout, overlap, put_back, start_call
from ._tensors import on_host, type_of
from ._work import Work, WorkGroup
from ._world import World

Pair = tuple[torch.Tensor, torch.Tensor]  # indices and values of a sparse piece


def size_problem(*lists: Sequence[torch.Tensor]) -> str:
    """The error in the types of tensors, or in the number of elements of a list; empty if there is none."""
    for tensors in lists:
        for tensor in tensors:
            if not _types.is_known(type_of(tensor)):
                return f"tensors of type {type_of(tensor)} cannot be sent"
        count = sum(tensor.numel() for tensor in tensors)
        if count > MAX_ELEMENTS:
            return f"{count} elements are too many for a call; at most {MAX_ELEMENTS} fit"
    return ""


def rows_by_rank(what: str, tensor: torch.Tensor, splits: Any, ranks: int) -> tuple[list[int], str]:
    """The number of a tensor's rows for each rank, and the error in them; empty if there is none.

    Args:
        what: the name of the tensor in errors.
        splits: a list or a tensor of these numbers; None, or empty, for equal ones.
    """
    if tensor.dim() == 0:
        return [], f"{what} has no dimension whose rows could be sent"
    rows = tensor.shape[0]
    if splits is None or (isinstance(splits, (list, tuple)) and not splits):
        problem = f"{what} has {rows} rows, which {ranks} ranks cannot share equally; pass splits"
        return [rows // ranks] * ranks, problem if rows % ranks else ""
    try:
        counts = [operator.index(count) for count in splits]
    except (TypeError, ValueError):
        return [], f"the splits of {what} are {splits!r}; they must be a list or a tensor of integers"
    if len(counts) != ranks:
        return [], f"the splits of {what} are {len(counts)} numbers; it needs one for each of {ranks} ranks"
    if min(counts) < 0 or sum(counts) != rows:
        return (
            [],
            f"the splits of {what} are {counts}; they must be {rows} rows in all, and no number negative",
        )
    return counts, ""


def agree_on_numbers(
    text: str,
    problem: str,
    numbers: Sequence[Sequence[int]],
    ranks: World,
    check: Callable[[Any], str] = lambda _: "",
) -> list[list[int]]:
    """Send three numbers to each rank, and check that all ranks can exchange pieces. Collective; blocks.

    Args:
        text: the description of the call, equal on all ranks.
        problem: the error in this rank's arguments; empty if there is none.
        numbers: for each rank.
        check: returns the error in the numbers that arrive; empty if there is none.

    Returns:
        The numbers that come from each rank.

    Raises:
        ValueError: there is an error on a rank, or descriptions differ; on all ranks.
    """
    agree(text, problem, ranks)
    mine = torch.tensor(numbers, dtype=torch.int64)
    theirs, length = torch.empty_like(mine), len(numbers[0])
    arguments = *elements(mine, length), *elements(theirs, length), ranks.plain
    found = start_call(library.MPI_Ialltoall, *arguments, keep=(mine, theirs), finish=theirs.tolist).wait()
    agree(text, check(found), ranks)
    return found


def start_exchange(
    flat: torch.Tensor, sent: Sequence[int], made: torch.Tensor, arriving: Sequence[int], comm: Any
) -> Work:
    """Start to send parts of a buffer that follow one another, and to receive parts likewise; returns `made`.

    Args:
        flat, made: contiguous, on the host, without memory in common.
        sent, arriving: elements for and from each rank.
    """
    tables = layout(sent), layout(arriving)
    source, _, datatype = elements(flat)
    arguments = source, *tables[0], datatype, elements(made)[0], *tables[1], datatype, comm
    keep = flat, made, tables
    return start_call(library.MPI_Ialltoallv, *arguments, keep=keep, finish=lambda: made)


def start_sparse_exchange(pieces: Sequence[Pair], shapes: Sequence[Sequence[Any]], comm: Any) -> Work:
    """Start to send a sparse piece to each rank.

    Args:
        pieces: indices and values for each rank.
        shapes: the shapes of the indices, and of the values, that come from each rank.

    Returns:
        Work, of a list of the pieces that have arrived.
    """
    kinds, works = list(zip(*shapes)), []
    counts = [[torch.Size(shape).numel() for shape in kind] for kind in kinds]
    for parts, arriving in zip(zip(*pieces), counts):
        flat = torch.cat([on_host(part).reshape(-1) for part in parts])
        sent, made = [part.numel() for part in parts], flat.new_empty(sum(arriving))
        works.append(start_exchange(flat, sent, made, arriving, comm))

    def finish(buffers: Sequence[torch.Tensor]) -> list[Any]:
        columns = [
            [part.view(shape).clone() for part, shape in zip(made.split(arriving), kind)]
            for made, arriving, kind in zip(buffers, counts, kinds)
        ]
        return list(zip(*columns))

    return Work(WorkGroup(works), finish)


def all_to_all(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], ranks: World) -> Work:
    """Start to send inputs[rank] to each rank, whose outputs[this rank] has its size. Collective; blocks to
    compare sizes.

    Args:
        outputs: overwritten; all dense or all sparse COO, like the inputs. Sparse ones have the shapes of the
            tensors they receive, and may have other elements before.
        inputs: one tensor for each rank; sizes may differ, also to 0.

    Raises:
        ValueError: the lists are wrong on a rank, or do not fit those of another; on all ranks.
    """
    size = ranks.size
    problem = _list_problem("output", outputs, inputs, size) or _list_problem("input", inputs, inputs, size)
    if not problem and inputs[0].is_sparse:
        return _all_to_all_sparse(outputs, inputs, ranks)
    sent, expected = ([piece.numel() for piece in pieces] for pieces in (inputs, outputs))
    problem = problem or size_problem(inputs, outputs)
    _agree_on_dense("all_to_all", problem, sent, expected, type_of(inputs[0]) if inputs else "", ranks)
    flat = torch.cat([on_host(piece).view(-1) for piece in inputs])

    def finish(made: torch.Tensor) -> Sequence[torch.Tensor]:
        for piece, output in zip(made.split(expected), outputs):
            output.detach().copy_(piece.view(output.shape))
        return outputs

    return Work(start_exchange(flat, sent, flat.new_empty(sum(expected)), expected, ranks.plain), finish)


def all_to_all_single(
    output: torch.Tensor,
    tensor: torch.Tensor,
    output_splits: Sequence[int],
    input_splits: Sequence[int],
    ranks: World,
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
    problem = ""
    if (tensor.layout, output.layout) != (torch.strided, torch.strided):
        problem = "all_to_all_single needs dense tensors; sparse ones can be sent by all_to_all"
    elif output.dtype != tensor.dtype:
        problem = f"the output is of type {type_of(output)}, and the input of {type_of(tensor)}"
    expected, wrong_output = rows_by_rank("the output", output, output_splits, ranks.size)
    sent, wrong_input = rows_by_rank("the input", tensor, input_splits, ranks.size)
    problem = problem or wrong_output or wrong_input or size_problem([tensor], [output])
    expected, sent = (
        [rows * each.shape[1:].numel() for rows in counts]
        for counts, each in ((expected, output), (sent, tensor))
    )
    _agree_on_dense("all_to_all_single", problem, sent, expected, type_of(tensor), ranks)
    buffer, source = on_host(output), on_host(tensor)
    source = source.clone() if overlap(source, buffer) else source
    work = start_exchange(source, sent, buffer, expected, ranks.plain)
    return Work(work, lambda made: put_back(made, output))


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


def _agree_on_dense(
    function: str, problem: str, sent: list[int], expected: list[int], kind: str, ranks: World
) -> None:
    """Compare types, and the numbers of elements that ranks send and expect. Collective; blocks."""

    def check(found: Sequence[Sequence[int]]) -> str:
        for rank, (count,) in enumerate(found):
            if count != expected[rank]:
                return f"rank {rank} sends {count} elements, and the output has {expected[rank]} for them"
        return ""

    agree_on_numbers(f"{function}(dense {kind})", problem, [[count] for count in sent], ranks, check)


def _describe(tensor: torch.Tensor) -> str:
    return f"a sparse {type_of(tensor)} of shape {tuple(tensor.shape)}"


def _checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(_describe(tensor).encode())


def _all_to_all_sparse(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], ranks: World) -> Work:
    pieces = [(piece._indices(), piece._values()) for piece in inputs]
    numbers = [[piece._nnz(), piece.sparse_dim(), _checksum(piece)] for piece in inputs]

    def check(found: Sequence[Sequence[int]]) -> str:
        total = 0
        for output, (rank, (nnz, dims, checksum)) in zip(outputs, enumerate(found)):
            if checksum != _checksum(output):
                return f"output {rank} is {_describe(output)}, unlike the tensor from rank {rank}"
            total += nnz * max(dims, output.shape[dims:].numel())
        too_many = f"{total} elements are too many for a call; at most {MAX_ELEMENTS} fit"
        return too_many if total > MAX_ELEMENTS else ""

    text = f"all_to_all(sparse {type_of(inputs[0])})"
    arriving = agree_on_numbers(text, size_problem(*zip(*pieces)), numbers, ranks, check)
    shapes = [((dims, nnz), (nnz, *output.shape[dims:])) for output, (nnz, dims, _) in zip(outputs, arriving)]

    def finish(made: Sequence[Pair]) -> Sequence[torch.Tensor]:
        return [replace(output, *pair) for output, pair in zip(outputs, made)]

    return Work(start_sparse_exchange(pieces, shapes, ranks.plain), finish)
