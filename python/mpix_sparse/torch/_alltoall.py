# SPDX-License-Identifier: BSD-3-Clause
"""Alltoall of tensors with Horovod's interface. Rows of the first dimension go to the ranks in order; rows of
a sparse COO tensor are its slices along the first dimension, of which only the elements are sent."""

from __future__ import annotations

import ctypes
import itertools
import zlib
from typing import Any, Sequence

import torch

from .. import _mpi, _types
from .._library import library
from .._pending import PendingCall
from ._work import Work, WorkGroup
from ._process_set import ranks_of
from ._tensors import on_host, refuse_other, sparse_of, type_of
from ._world import World

MAX_COUNT = 2**31 - 1  # MPI counts in int


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(counts)][:-1]


def _ints(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int * len(numbers))(*numbers)


def _exchange_numbers(numbers: torch.Tensor, ranks: World) -> torch.Tensor:
    """Send row i of a table of integers to rank i; returns the rows of all ranks. Collective; blocks."""
    made = torch.empty_like(numbers)
    pending = PendingCall((numbers, made), lambda: made)
    how = ctypes.c_int(numbers.shape[1]), _mpi.constant("INT64_T")
    buffers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (numbers, made))
    arguments = [part for buffer in buffers for part in (buffer, *how)]
    code = library.MPI_Ialltoall(*arguments, ranks.plain, ctypes.byref(pending.request))
    return pending.begin(code).wait()


def _start_rows(tensor: torch.Tensor, send: Sequence[int], receive: Sequence[int], ranks: World) -> Work:
    """Start to send consecutive rows, send[i] to rank i; receive[i] come from it."""
    source, row = on_host(tensor), tensor.shape[1:].numel()
    if sum(receive) * row > MAX_COUNT:
        raise ValueError(f"other ranks send {sum(receive) * row} elements; {MAX_COUNT} are the most")
    made = source.new_empty((sum(receive), *tensor.shape[1:]))
    datatype, keep = _types.datatype(type_of(tensor)), [source, made]
    arguments = []
    for buffer, rows in ((source, send), (made, receive)):
        counts = [count * row for count in rows]
        tables = _ints(counts), _ints(_starts(counts))
        arguments += [ctypes.c_void_p(buffer.data_ptr()), *tables, datatype]
        keep += tables
    pending = PendingCall(keep, lambda: made)
    code = library.MPI_Ialltoallv(*arguments, ranks.plain, ctypes.byref(pending.request))
    return Work(pending.begin(code), lambda _: made)


def _splits(tensor: torch.Tensor, splits: Any, size: int) -> tuple[list[int], str]:
    """The number of rows for each rank, and what is wrong with them; empty if nothing is."""
    if tensor.dim() == 0:
        return [], "the tensor has no dimension whose rows could be sent"
    rows = tensor.shape[0]
    if splits is None:
        problem = f"the tensor has {rows} rows, which {size} ranks cannot share equally; pass splits"
        return [rows // size] * size, problem if rows % size else ""
    try:
        counts = [int(count) for count in splits]
    except (TypeError, ValueError):
        return [], f"splits is {splits!r}; it must be a list or a tensor of integers"
    if len(counts) != size:
        return [], f"splits has {len(counts)} numbers; it needs one for each of {size} ranks"
    if min(counts) < 0 or sum(counts) != rows:
        return [], f"splits is {counts}; its sum must be the tensor's {rows} rows, and no number negative"
    return counts, ""


def _described(tensor: torch.Tensor) -> str:
    sparse = f", {tensor.sparse_dim()} sparse dimensions" if tensor.is_sparse else ""
    return f"{type_of(tensor)} of {tuple(tensor.shape[1:])}{sparse}"


def _parts(tensor: torch.Tensor, counts: list[int], problem: str) -> tuple[list[torch.Tensor], list[int]]:
    """The tensors to send, whose rows are sorted by destination, and the number of these rows by rank."""
    if problem or not tensor.is_sparse:
        return [tensor], counts
    indices, values = on_host(tensor._indices()), on_host(tensor._values())
    ends = torch.tensor(list(itertools.accumulate(counts)))
    owners = torch.searchsorted(ends, indices[0].contiguous(), right=True)
    order = torch.sort(owners, stable=True)[1]
    local = indices.clone()
    local[0] -= torch.tensor(_starts(counts))[owners]
    return [local[:, order].t().contiguous(), values[order]], torch.bincount(
        owners, minlength=len(counts)
    ).tolist()


def _joined(tensor: torch.Tensor, parts: Any, rows: list[int], elements: list[int]) -> torch.Tensor:
    """The sparse tensor of the elements that ranks have sent, whose rows follow one another."""
    indices, values = parts
    indices = indices.t().contiguous()
    indices[0] += torch.repeat_interleave(torch.tensor(_starts(rows)), torch.tensor(elements))
    return sparse_of(indices, values, tensor, (sum(rows), *tensor.shape[1:]))


def _agreed(tensor: torch.Tensor, splits: Any, ranks: World) -> tuple[Any, list[int], list[list[int]]]:
    """The tensors to send with the numbers of their rows by rank; and the rows, and elements, that come from
    each rank. Collective; blocks."""
    counts, problem = _splits(tensor, splits, ranks.size)
    parts, elements = _parts(tensor, counts, problem)
    if not problem and sum(elements) * max(part.shape[1:].numel() for part in parts) > MAX_COUNT:
        problem = f"the tensor has more than {MAX_COUNT} elements"
    checksum = -1 if problem else zlib.crc32(_described(tensor).encode())
    table = [[0] * ranks.size] * 2 if problem else [counts, elements]
    sent = torch.tensor([[checksum, *each] for each in zip(*table)])
    received = _exchange_numbers(sent, ranks).tolist()
    if problem:
        raise ValueError(problem)
    for rank, (theirs, *_) in enumerate(received):
        if theirs < 0:
            raise ValueError(f"rank {rank} has an error in its arguments")
        if theirs != checksum:
            raise ValueError(
                f"rows here are {_described(tensor)}, and of another type or shape on rank {rank}"
            )
    return parts, elements, [list(each) for each in zip(*(row[1:] for row in received))]


def _start(tensor: torch.Tensor, splits: Any, ranks: World) -> Work:
    refuse_other(tensor)
    tensor = tensor.detach()
    parts, send, (rows, elements) = _agreed(tensor, splits, ranks)
    works = WorkGroup([_start_rows(part, send, elements, ranks) for part in parts])
    dtype = splits.dtype if isinstance(splits, torch.Tensor) else torch.int32

    def finish(made: Any) -> tuple[torch.Tensor, torch.Tensor]:
        whole = _joined(tensor, made, rows, elements) if tensor.is_sparse else made[0].to(tensor.device)
        return whole, torch.tensor(rows, dtype=dtype)

    return Work(works, finish)


def alltoall_async(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None, process_set: Any = None
) -> Work:
    """Start alltoall(). Collective; blocks to exchange the numbers of rows. synchronize() returns the tensor
    and the numbers of rows, with and without splits."""
    return _start(tensor, splits, ranks_of(process_set))


class _Alltoall(torch.autograd.Function):
    """The gradients of rows go back to the ranks that the rows came from."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Any, process_set: Any) -> Any:
        made, rows = alltoall_async(tensor, splits, None, process_set).wait()
        ctx.rows, ctx.process_set = rows, process_set
        ctx.mark_non_differentiable(rows)
        return made, rows

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, unused: Any) -> Any:
        return _Alltoall.apply(gradient, ctx.rows, ctx.process_set)[0], None, None


def alltoall(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None, process_set: Any = None
) -> Any:
    """Send rows of a tensor to all ranks, and concatenate those that come from them, in rank order.
    Collective; blocks. Differentiable if dense: backward() is collective too.

    Args:
        tensor: dense or sparse COO; of the same type on all ranks, and of the same shape except for the first
            dimension. Of a sparse one only the elements are sent.
        splits: the number of rows for each rank, a list or a tensor of integers; None for equal numbers.
        name: ignored; calls are matched by order.
        process_set: as for allreduce().

    Returns:
        A new tensor; with splits also a tensor with the number of rows that came from each rank.

    Raises:
        TypeError: the argument is not a tensor, or MPI has no such type. Only on this rank.
        ValueError: more than 2**31 - 1 elements come to this rank. Only on this rank.
        ValueError: shapes or types differ, splits does not fit, or without splits the number of rows is not a
            multiple of the number of ranks; on all ranks.
    """
    refuse_other(tensor)
    if tensor.is_sparse:
        made, rows = alltoall_async(tensor, splits, name, process_set).wait()
    else:
        made, rows = _Alltoall.apply(tensor, splits, process_set)
    return made if splits is None else (made, rows)
