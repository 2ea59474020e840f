# SPDX-License-Identifier: BSD-3-Clause
"""MPI's own collectives on tensors, started: what moves numbers without adding them."""

from __future__ import annotations

import ctypes
import pickle
import zlib
from typing import Any, Callable, Sequence

import torch

from .. import _mpi, _types
from .._flight import Flight
from .._library import library
from ._allreduce import All, Work
from ._tensors import on_host, sparse_of, type_of

MOST = 2**31 - 1  # of elements in one call: MPI counts in int


def _elements(tensor: torch.Tensor, count: int | None = None) -> tuple[Any, Any, Any]:
    """Address, count and datatype of a contiguous tensor of the host, or of its first elements.

    Raises:
        TypeError: they are of a type that MPI lacks.
        ValueError: there are too many.
    """
    count = tensor.numel() if count is None else count
    if count > MOST:
        raise ValueError(f"a tensor of {count} elements; one of at most {MOST} can be sent")
    return ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int(count), _types.datatype(type_of(tensor))


def _mismatch(what: str, pieces: Sequence[torch.Tensor], tensor: torch.Tensor, comm: Any) -> str:
    """What keeps a list from having a piece of a tensor's size and type for each rank; empty if nothing."""
    ranks = _mpi.size(comm)
    if len(pieces) != ranks:
        return f"the {what} list has {len(pieces)} tensors; it needs one for each of {ranks} ranks"
    for piece in pieces:
        if piece.layout != torch.strided:
            return f"the {what} list has a tensor of layout {piece.layout}; it needs dense ones"
        if (piece.numel(), piece.dtype) != (tensor.numel(), tensor.dtype):
            theirs, ours = (f"{other.numel()} x {type_of(other)}" for other in (piece, tensor))
            return f"the {what} list has a tensor of {theirs} for one of {ours}"
    return ""


def _refuse(wrong: str) -> None:
    if wrong:
        raise ValueError(wrong)


def _agree(tensor: torch.Tensor, wrong: str, comm: Any) -> torch.Tensor:
    """A tensor on the host, once all ranks have one of its size. Blocks: MPI would write past the end of
    memory.

    Raises:
        TypeError: it is sparse.
        ValueError: another rank's is, or has another size, or the list of any rank is wrong.
    """
    fits = not wrong and tensor.layout == torch.strided
    mine = tensor.numel() * tensor.element_size() if fits else -1
    sizes = gather_numbers([mine], comm)
    buffer = on_host(tensor)
    _refuse(wrong)
    for rank, (size,) in enumerate(sizes):
        if size < 0:
            raise ValueError(f"the tensor or the list of tensors on rank {rank} does not fit")
        if size != mine:
            raise ValueError(f"the tensor has {mine} bytes, and {size} on rank {rank}")
    return buffer


_NOTHING = (ctypes.c_void_p(), ctypes.c_int(0), _types.datatype("uint8"))  # of ranks that are not the root


def _start(function: Any, *arguments: Any, keep: Any, finish: Callable[[], Any]) -> Work:
    flight = Flight(keep, lambda: None)
    return Work(flight.begin(function(*arguments, ctypes.byref(flight.request))), lambda _: finish())


def _put_back(buffer: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    if buffer.data_ptr() != tensor.data_ptr():
        tensor.detach().copy_(buffer)
    return tensor


def barrier(comm: Any) -> Work:
    """Ends when all ranks have started it."""
    return _start(library.MPI_Ibarrier, comm, keep=None, finish=lambda: None)


def broadcast(tensor: torch.Tensor, root: int, comm: Any) -> Work:
    """Overwrite a tensor with the root's. A sparse one need have no elements yet on other ranks; waits until
    all have said what it is.

    Raises:
        ValueError: sparse tensors are of several shapes or types. All ranks learn of it.
    """
    if tensor.is_sparse:
        return _broadcast_sparse(tensor, root, comm)
    buffer = on_host(tensor)
    arguments = *_elements(buffer), ctypes.c_int(root), comm
    finish = lambda: _put_back(buffer, tensor)  # noqa: E731
    return _start(library.MPI_Ibcast, *arguments, keep=buffer, finish=finish)


def allgather(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, comm: Any) -> Work:
    """Put every rank's tensor, all of one shape, into the output of that rank's number.

    Raises:
        ValueError: there is not an output of its size for each rank. Only this rank learns of it.
    """
    if tensor.is_sparse:
        return _allgather_sparse(outputs, tensor, comm)
    _refuse(_mismatch("output", outputs, tensor, comm))
    flat = tensor.new_empty((len(outputs), tensor.numel()), device="cpu")
    finish = lambda: _deal(flat, outputs)  # noqa: E731
    return _allgather_into(flat, tensor, comm, finish)


def allgather_into(output: torch.Tensor, tensor: torch.Tensor, comm: Any) -> Work:
    """The tensors of all ranks, of one shape, one after another in one output.

    Raises:
        ValueError: it is of another size or type. Only this rank learns of it.
    """
    count = _mpi.size(comm) * tensor.numel()
    if (output.numel(), output.dtype) != (count, tensor.dtype):
        theirs, ours = f"{output.numel()} x {type_of(output)}", f"{count} x {type_of(tensor)}"
        raise ValueError(f"the output tensor has {theirs}; those of all ranks make {ours}")
    buffer = on_host(output)
    return _allgather_into(buffer, tensor, comm, lambda: _put_back(buffer, output))


def _allgather_into(flat: torch.Tensor, tensor: torch.Tensor, comm: Any, finish: Callable[[], Any]) -> Work:
    buffer = on_host(tensor)
    arguments = *_elements(buffer), *_elements(flat, buffer.numel()), comm
    return _start(library.MPI_Iallgather, *arguments, keep=(buffer, flat), finish=finish)


def _deal(flat: torch.Tensor, outputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    for piece, output in zip(flat, outputs):
        output.detach().copy_(piece.view(output.shape))
    return outputs


def gather(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, root: int, comm: Any) -> Work:
    """Put every rank's tensor into an output on the root; elsewhere there are no outputs. Waits until all
    ranks have said how large their tensors are.

    Raises:
        ValueError: outputs and tensors do not go together, on any rank. All ranks learn of it.
    """
    wrong = _mismatch("output", outputs, tensor, comm) if _mpi.rank(comm) == root else ""
    buffer = _agree(tensor, wrong, comm)
    flat = tensor.new_empty((len(outputs), tensor.numel()), device="cpu")
    into = _elements(flat, buffer.numel()) if outputs else _NOTHING
    arguments = *_elements(buffer), *into, ctypes.c_int(root), comm
    finish = lambda: _deal(flat, outputs)  # noqa: E731
    return _start(library.MPI_Igather, *arguments, keep=(buffer, flat), finish=finish)


def scatter(tensor: torch.Tensor, inputs: Sequence[torch.Tensor], root: int, comm: Any) -> Work:
    """Overwrite each rank's tensor with the root's input of its number; elsewhere there are no inputs. Waits
    and raises as gather()."""
    wrong = _mismatch("input", inputs, tensor, comm) if _mpi.rank(comm) == root else ""
    buffer = _agree(tensor, wrong, comm)
    flat = torch.stack([on_host(piece).view(-1) for piece in inputs]) if inputs else None
    source = _NOTHING if flat is None else _elements(flat, buffer.numel())
    arguments = *source, *_elements(buffer), ctypes.c_int(root), comm
    finish = lambda: _put_back(buffer, tensor)  # noqa: E731
    return _start(library.MPI_Iscatter, *arguments, keep=(buffer, flat), finish=finish)


def send(tensor: torch.Tensor, rank: int, tag: int, comm: Any) -> Work:
    """Send a tensor to a rank, which receives one of its shape and type."""
    buffer = on_host(tensor)
    arguments = *_elements(buffer), ctypes.c_int(rank), ctypes.c_int(tag), comm
    return _start(library.MPI_Isend, *arguments, keep=buffer, finish=lambda: tensor)


def receive(tensor: torch.Tensor, rank: int, tag: int, comm: Any) -> Work:
    """Overwrite a tensor with what a rank sends."""
    buffer = on_host(tensor)
    arguments = *_elements(buffer), ctypes.c_int(rank), ctypes.c_int(tag), comm
    finish = lambda: _put_back(buffer, tensor)  # noqa: E731
    return _start(library.MPI_Irecv, *arguments, keep=buffer, finish=finish)


def gather_numbers(mine: Sequence[int], comm: Any) -> list[list[int]]:
    """Some numbers of each rank. Blocks."""
    numbers = torch.empty(_mpi.size(comm), len(mine), dtype=torch.int64)
    return allgather_into(numbers, torch.tensor(mine), comm).wait().tolist()


def pickled(obj: Any) -> tuple[bytes, str]:
    """An object as bytes, or what keeps it from being some, for other ranks to be told."""
    try:
        return pickle.dumps(obj), ""
    except Exception as reason:  # of any type: objects have a say in it
        return b"", f"the object cannot be pickled: {reason}"


def agree_on_rows(length: int, rows: str, wrong: str, comm: Any) -> list[int]:
    """How many rows each rank has, where all have what `rows` says. Blocks.

    Raises:
        ValueError: on all ranks, where one has rows of another kind, or says what is wrong with its own.
    """
    mark = zlib.crc32(rows.encode())
    found = gather_numbers([-1 if wrong else length, mark], comm)
    _refuse(wrong)
    for rank, (theirs, their_mark) in enumerate(found):
        if theirs < 0:
            raise ValueError(f"rank {rank} has nothing that can be gathered")
        if their_mark != mark:
            raise ValueError(f"rows here are {rows}, and of another type or shape on rank {rank}")
    return [theirs for theirs, _ in found]


def allgather_rows(tensor: torch.Tensor, lengths: Sequence[int], comm: Any) -> Work:
    """The rows of all ranks, as many of each as `lengths` says, one after another in a new tensor."""
    buffer = on_host(tensor)
    made = tensor.new_empty((sum(lengths), *tensor.shape[1:]), device="cpu")
    row = tensor.shape[1:].numel()
    pointer, _, datatype = _elements(made)
    counts = (ctypes.c_int * len(lengths))(*(length * row for length in lengths))
    starts = (ctypes.c_int * len(lengths))(*(sum(lengths[:i]) * row for i in range(len(lengths))))
    arguments = *_elements(buffer), pointer, counts, starts, datatype, comm
    keep = buffer, made, counts, starts
    return _start(library.MPI_Iallgatherv, *arguments, keep=keep, finish=lambda: made.to(tensor.device))


def _rows_of(tensor: torch.Tensor) -> str:
    """What sparse tensors of all ranks must have in common."""
    return f"{type_of(tensor)} of {tuple(tensor.shape)}, {tensor.sparse_dim()} of whose dimensions are sparse"


def _broadcast_sparse(tensor: torch.Tensor, root: int, comm: Any) -> Work:
    nnz = agree_on_rows(tensor._nnz(), _rows_of(tensor), "", comm)[root]
    indices, values = tensor._indices(), tensor._values()
    if _mpi.rank(comm) != root:  # into new ones, since the tensor's may be somebody else's too
        indices, values = indices.new_empty(len(indices), nnz), values.new_empty(nnz, *values.shape[1:])
    works = [broadcast(part, root, comm) for part in (indices.contiguous(), values.contiguous())]
    return Work(All(works), lambda parts: _replace(tensor, *parts))


def _allgather_sparse(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, comm: Any) -> Work:
    fits = len(outputs) == _mpi.size(comm) and all(output.shape == tensor.shape for output in outputs)
    wrong = "" if fits else "the output list needs a tensor of this shape for each rank"
    lengths = agree_on_rows(tensor._nnz(), _rows_of(tensor), wrong, comm)
    parts = tensor._indices().t().contiguous(), tensor._values().contiguous()
    works = [allgather_rows(part, lengths, comm) for part in parts]

    def finish(gathered: Any) -> Sequence[torch.Tensor]:
        pieces = zip(outputs, *(whole.split(lengths) for whole in gathered))
        return [_replace(output, indices.t(), values) for output, indices, values in pieces]

    return Work(All(works), finish)


def _replace(tensor: torch.Tensor, indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    tensor.data = sparse_of(indices, values, tensor)
    return tensor
