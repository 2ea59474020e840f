# SPDX-License-Identifier: BSD-3-Clause
"""MPI's nonblocking functions on tensors, and gathers of numbers and rows by them."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any, Callable, Sequence

import torch

from .. import _mpi, _types
from .._library import library
from .._pending import PendingCall
from ._tensors import on_host, type_of
from ._work import Work

MAX_ELEMENTS = 2**31 - 1  # in one call: MPI counts in int


def elements(tensor: torch.Tensor, count: int | None = None) -> tuple[Any, Any, Any]:
    """Address, count and datatype of a contiguous tensor in host memory, or of its first count elements.

    Raises:
        TypeError: MPI has no such type.
        ValueError: there are too many elements.
    """
    count = tensor.numel() if count is None else count
    if count > MAX_ELEMENTS:
        raise ValueError(f"a tensor of {count} elements; one of at most {MAX_ELEMENTS} can be sent")
    return ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int(count), _types.datatype(type_of(tensor))


def layout(counts: Sequence[int]) -> tuple[Any, Any]:
    """Counts and displacements, for MPI, of parts that follow one another."""
    kind = ctypes.c_int * len(counts)
    return kind(*counts), kind(*starts(counts))


def starts(counts: Sequence[int]) -> list[int]:
    """The start of each of several parts that follow one another."""
    return [0, *itertools.accumulate(counts)][:-1]


def start_call(
    function: Any, *arguments: Any, keep: Any, finish: Callable[[], Any], ordered: bool = True
) -> Work:
    """Start a nonblocking function of MPI, whose last argument is the communicator; `keep` are its buffers,
    and `finish` returns its result. See Work.orders for `ordered`."""
    pending = PendingCall(keep, lambda: None)
    handle = pending.begin(function(*arguments, ctypes.byref(pending.request)))
    return Work(handle, lambda _: finish(), arguments[-1] if ordered else None)


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two contiguous tensors share memory, which MPI forbids for its buffers."""
    spans = [(each.data_ptr(), each.numel() * each.element_size()) for each in (one, other)]
    (first, size), (second, other_size) = spans
    return first < second + other_size and second < first + size


def put_back(buffer: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor from its buffer in host memory, unless that is its own memory; returns the tensor."""
    if buffer.data_ptr() != tensor.data_ptr():
        tensor.detach().copy_(buffer)
    return tensor


def allgather_into(flat: torch.Tensor, tensor: torch.Tensor, comm: Any, finish: Callable[[], Any]) -> Work:
    """Start to concatenate the tensors of all ranks, all of one size, in a contiguous buffer on the host."""
    buffer = on_host(tensor)
    own = flat.data_ptr() + _mpi.rank(comm) * buffer.numel() * buffer.element_size()
    if buffer.numel() and buffer.data_ptr() == own:
        source = _mpi.IN_PLACE, ctypes.c_int(0), elements(buffer)[2]
    else:
        buffer = buffer.clone() if overlap(buffer, flat) else buffer
        source = elements(buffer)
    arguments = *source, *elements(flat, buffer.numel()), comm
    return start_call(library.MPI_Iallgather, *arguments, keep=(buffer, flat), finish=finish)


def gather_numbers(mine: Sequence[int], comm: Any) -> list[list[int]]:
    """A row of numbers from each rank. Collective; blocks."""
    numbers = torch.empty(_mpi.size(comm), len(mine), dtype=torch.int64)
    return allgather_into(numbers, torch.tensor(mine), comm, numbers.tolist).wait()


def gather_rows(tensor: torch.Tensor, lengths: Sequence[int], comm: Any) -> Work:
    """Start to concatenate the rows of all ranks, lengths[rank] of each, in a new tensor."""
    buffer, row = on_host(tensor), tensor.shape[1:].numel()
    made = tensor.new_empty((sum(lengths), *tensor.shape[1:]), device="cpu")
    pointer, _, datatype = elements(made)
    tables = layout([length * row for length in lengths])
    arguments = *elements(buffer), pointer, *tables, datatype, comm
    finish = lambda: made.to(tensor.device)  # noqa: E731
    return start_call(library.MPI_Iallgatherv, *arguments, keep=(buffer, made, tables), finish=finish)


def gather_bytes(data: bytes, lengths: Sequence[int], comm: Any) -> list[bytes]:
    """The bytes of all ranks, lengths[rank] of each. Collective; blocks."""
    tensor = (
        torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    )
    pieces = gather_rows(tensor, lengths, comm).wait().split(list(lengths))
    return [piece.numpy().tobytes() for piece in pieces]
