# SPDX-License-Identifier: BSD-3-Clause
"""MPI's nonblocking collectives and point-to-point calls on tensors: all communication without a
reduction."""

from __future__ import annotations

import ctypes
import pickle
import zlib
from typing import Any, Callable, Sequence

import torch

from .. import _mpi, _types
from .._pending import PendingCall
from .._library import library
from ._work import Work, WorkGroup
from ._tensors import on_host, sparse_of, type_of

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


def _mismatch(what: str, pieces: Sequence[torch.Tensor], tensor: torch.Tensor, comm: Any) -> str:
    """The error in a list that must have a tensor of this size and type for each rank; empty if there is
    none."""
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


def refuse(problem: str) -> None:
    """Raise ValueError with a problem, unless it is empty."""
    if problem:
        raise ValueError(problem)


def _check_sizes(tensor: torch.Tensor, problem: str, comm: Any) -> torch.Tensor:
    """Check that tensors have the same size on all ranks, since MPI would write past a shorter one; returns
    the tensor in host memory. Collective; blocks.

    Raises:
        TypeError: the tensor is sparse.
        ValueError: another rank's tensor is sparse or has another size, or a list on any rank is wrong.
    """
    fits = not problem and tensor.layout == torch.strided
    mine = tensor.numel() * tensor.element_size() if fits else -1
    sizes = gather_numbers([mine], comm)
    buffer = on_host(tensor)
    refuse(problem)
    for rank, (size,) in enumerate(sizes):
        if size < 0:
            raise ValueError(f"the tensor or the list of tensors on rank {rank} does not fit")
        if size != mine:
            raise ValueError(f"the tensor has {mine} bytes, and {size} on rank {rank}")
    return buffer


_NO_BUFFER = (ctypes.c_void_p(), ctypes.c_int(0), _types.datatype("uint8"))  # on ranks other than the root


def start_call(
    function: Any, *arguments: Any, keep: Any, finish: Callable[[], Any], ordered: bool = True
) -> Work:
    """Start a nonblocking function of MPI, whose last argument is the communicator; `keep` are its buffers,
    and `finish` returns its result. See Work.orders for `ordered`."""
    pending = PendingCall(keep, lambda: None)
    handle = pending.begin(function(*arguments, ctypes.byref(pending.request)))
    return Work(handle, lambda _: finish(), arguments[-1] if ordered else None)


def put_back(buffer: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor from its buffer in host memory, unless that is its own memory; returns the tensor."""
    if buffer.data_ptr() != tensor.data_ptr():
        tensor.detach().copy_(buffer)
    return tensor


def barrier(comm: Any) -> Work:
    """Start a barrier."""
    return start_call(library.MPI_Ibarrier, comm, keep=None, finish=lambda: None)


def broadcast(tensor: torch.Tensor, root: int, comm: Any) -> Work:
    """Start to overwrite a tensor with the root's. Sparse tensors may have different elements before; the
    call then blocks to compare shapes and types.

    Raises:
        ValueError: shapes or types of sparse tensors differ, on all ranks.
    """
    if tensor.is_sparse:
        return _broadcast_sparse(tensor, root, comm)
    buffer = on_host(tensor)
    arguments = *elements(buffer), ctypes.c_int(root), comm
    finish = lambda: put_back(buffer, tensor)  # noqa: E731
    return start_call(library.MPI_Ibcast, *arguments, keep=buffer, finish=finish)


def allgather(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, comm: Any) -> Work:
    """Start to copy every rank's tensor, all of one shape, into outputs[rank].

    Raises:
        ValueError: outputs do not have one tensor of this size for each rank. Only on this rank.
    """
    if tensor.is_sparse:
        return _allgather_sparse(outputs, tensor, comm)
    refuse(_mismatch("output", outputs, tensor, comm))
    flat = tensor.new_empty((len(outputs), tensor.numel()), device="cpu")
    finish = lambda: _split_into(flat, outputs)  # noqa: E731
    return _allgather_into(flat, tensor, comm, finish)


def allgather_into(output: torch.Tensor, tensor: torch.Tensor, comm: Any) -> Work:
    """Start to concatenate the tensors of all ranks, all of one shape, in one output.

    Raises:
        ValueError: the output has another size or type. Only on this rank.
    """
    if tensor.is_sparse:
        return _allgather_sparse_into(output, tensor, comm)
    count = _mpi.size(comm) * tensor.numel()
    if (output.numel(), output.dtype) != (count, tensor.dtype):
        theirs, ours = f"{output.numel()} x {type_of(output)}", f"{count} x {type_of(tensor)}"
        raise ValueError(f"the output tensor has {theirs}; those of all ranks make {ours}")
    buffer = on_host(output)
    return _allgather_into(buffer, tensor, comm, lambda: put_back(buffer, output))


def _allgather_into(flat: torch.Tensor, tensor: torch.Tensor, comm: Any, finish: Callable[[], Any]) -> Work:
    buffer = on_host(tensor)
    own = flat.data_ptr() + _mpi.rank(comm) * buffer.numel() * buffer.element_size()
    if buffer.numel() and buffer.data_ptr() == own:
        source = _mpi.IN_PLACE, ctypes.c_int(0), elements(buffer)[2]
    else:
        buffer = buffer.clone() if overlap(buffer, flat) else buffer
        source = elements(buffer)
    arguments = *source, *elements(flat, buffer.numel()), comm
    return start_call(library.MPI_Iallgather, *arguments, keep=(buffer, flat), finish=finish)


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two contiguous tensors share memory, which MPI forbids for its buffers."""
    spans = [(each.data_ptr(), each.numel() * each.element_size()) for each in (one, other)]
    (first, size), (second, other_size) = spans
    return first < second + other_size and second < first + size


def _split_into(flat: torch.Tensor, outputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    for piece, output in zip(flat, outputs):
        output.detach().copy_(piece.view(output.shape))
    return outputs


def gather(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, root: int, comm: Any) -> Work:
    """Start to copy every rank's tensor into an output on the root; other ranks pass no outputs. Blocks to
    compare sizes.

    Raises:
        ValueError: outputs and tensors do not match on some rank; on all ranks.
    """
    problem = _mismatch("output", outputs, tensor, comm) if _mpi.rank(comm) == root else ""
    buffer = _check_sizes(tensor, problem, comm)
    flat = tensor.new_empty((len(outputs), tensor.numel()), device="cpu")
    receive_buffer = elements(flat, buffer.numel()) if outputs else _NO_BUFFER
    arguments = *elements(buffer), *receive_buffer, ctypes.c_int(root), comm
    finish = lambda: _split_into(flat, outputs)  # noqa: E731
    return start_call(library.MPI_Igather, *arguments, keep=(buffer, flat), finish=finish)


def gather_into(output: torch.Tensor, tensor: torch.Tensor, root: int, comm: Any) -> Work:
    """Start to concatenate the tensors of all ranks in the root's output. Blocks and raises as gather()
    does."""
    pieces, made, ranks = [], output, _mpi.size(comm)
    if _mpi.rank(comm) == root:
        made = output.detach()
        dense = output.layout == torch.strided
        if dense and not output.is_contiguous():
            made = made.clone(memory_format=torch.contiguous_format)
        even = dense and output.numel() % ranks == 0
        pieces = list(made.view(ranks, output.numel() // ranks).unbind(0)) if even else [made]
    finish = lambda _: put_back(made, output)  # noqa: E731
    return Work(gather(pieces, tensor, root, comm), finish)


def scatter(tensor: torch.Tensor, inputs: Sequence[torch.Tensor], root: int, comm: Any) -> Work:
    """Start to overwrite each rank's tensor with the root's inputs[rank]; other ranks pass no inputs.
    Blocks and raises as gather() does."""
    problem = _mismatch("input", inputs, tensor, comm) if _mpi.rank(comm) == root else ""
    buffer = _check_sizes(tensor, problem, comm)
    flat = torch.stack([on_host(piece).view(-1) for piece in inputs]) if inputs else None
    source = _NO_BUFFER if flat is None else elements(flat, buffer.numel())
    arguments = *source, *elements(buffer), ctypes.c_int(root), comm
    finish = lambda: put_back(buffer, tensor)  # noqa: E731
    return start_call(library.MPI_Iscatter, *arguments, keep=(buffer, flat), finish=finish)


def send(tensor: torch.Tensor, rank: int, tag: int, comm: Any) -> Work:
    """Start to send a tensor to a rank, which receives one of its shape and type."""
    buffer = on_host(tensor)
    arguments = *elements(buffer), ctypes.c_int(rank), ctypes.c_int(tag), comm
    return start_call(library.MPI_Isend, *arguments, keep=buffer, finish=lambda: tensor, ordered=False)


def receive(tensor: torch.Tensor, rank: int, tag: int, comm: Any) -> Work:
    """Start to overwrite a tensor with one that a rank sends."""
    buffer = on_host(tensor)
    arguments = *elements(buffer), ctypes.c_int(rank), ctypes.c_int(tag), comm
    finish = lambda: put_back(buffer, tensor)  # noqa: E731
    return start_call(library.MPI_Irecv, *arguments, keep=buffer, finish=finish, ordered=False)


def gather_numbers(mine: Sequence[int], comm: Any) -> list[list[int]]:
    """A row of numbers from each rank. Collective; blocks."""
    numbers = torch.empty(_mpi.size(comm), len(mine), dtype=torch.int64)
    return allgather_into(numbers, torch.tensor(mine), comm).wait().tolist()


def pickled(obj: Any) -> tuple[bytes, str]:
    """Pickle an object: its bytes, or the text of the error."""
    try:
        return pickle.dumps(obj), ""
    except Exception as reason:  # objects define how they are pickled, so any exception is possible
        return b"", f"the object cannot be pickled: {reason}"


def agree_on_rows(length: int, rows: str, problem: str, comm: Any) -> list[int]:
    """The number of rows of each rank. `rows` describes a row and must be equal on all ranks. Collective;
    blocks.

    Raises:
        ValueError: a rank has other rows, or reports a problem; on all ranks.
    """
    checksum = zlib.crc32(rows.encode())
    found = gather_numbers([-1 if problem else length, checksum], comm)
    refuse(problem)
    for rank, (theirs, their_checksum) in enumerate(found):
        if theirs < 0:
            raise ValueError(f"rank {rank} has nothing that can be gathered")
        if their_checksum != checksum:
            raise ValueError(f"rows here are {rows}, and of another type or shape on rank {rank}")
    return [theirs for theirs, _ in found]


def agree(arguments: str, problem: str, comm: Any) -> None:
    """Compare a description of a call's arguments with the other ranks'. Collective; blocks.

    Raises:
        ValueError: a rank has other arguments, or reports a problem; on all ranks.
    """
    checksum = zlib.crc32(arguments.encode())
    found = gather_numbers([int(bool(problem)), checksum], comm)
    refuse(problem)
    for rank, (wrong, their_checksum) in enumerate(found):
        if wrong:
            raise ValueError(f"the tensors on rank {rank} do not fit the call")
        if their_checksum != checksum:
            raise ValueError(f"the arguments are {arguments}; those of rank {rank} differ")


def allgather_rows(tensor: torch.Tensor, lengths: Sequence[int], comm: Any) -> Work:
    """Start to concatenate the rows of all ranks, lengths[rank] of each, in a new tensor."""
    buffer = on_host(tensor)
    made = tensor.new_empty((sum(lengths), *tensor.shape[1:]), device="cpu")
    row = tensor.shape[1:].numel()
    pointer, _, datatype = elements(made)
    counts = (ctypes.c_int * len(lengths))(*(length * row for length in lengths))
    starts = (ctypes.c_int * len(lengths))(*(sum(lengths[:i]) * row for i in range(len(lengths))))
    arguments = *elements(buffer), pointer, counts, starts, datatype, comm
    keep = buffer, made, counts, starts
    return start_call(library.MPI_Iallgatherv, *arguments, keep=keep, finish=lambda: made.to(tensor.device))


def rows_of(tensor: torch.Tensor) -> str:
    """A description of sparse tensors that must be equal on all ranks."""
    return f"{type_of(tensor)} of {tuple(tensor.shape)}, {tensor.sparse_dim()} of whose dimensions are sparse"


def _broadcast_sparse(tensor: torch.Tensor, root: int, comm: Any) -> Work:
    nnz = agree_on_rows(tensor._nnz(), rows_of(tensor), "", comm)[root]
    indices, values = tensor._indices(), tensor._values()
    if _mpi.rank(comm) != root:  # new ones, since other tensors may share the old ones
        indices, values = indices.new_empty(len(indices), nnz), values.new_empty(nnz, *values.shape[1:])
    works = [broadcast(part, root, comm) for part in (indices.contiguous(), values.contiguous())]
    return Work(WorkGroup(works), lambda parts: replace(tensor, *parts))


def _allgather_sparse(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, comm: Any) -> Work:
    fits = len(outputs) == _mpi.size(comm) and all(output.shape == tensor.shape for output in outputs)
    problem = "" if fits else "the output list needs a tensor of this shape for each rank"
    lengths = agree_on_rows(tensor._nnz(), rows_of(tensor), problem, comm)
    parts = tensor._indices().t().contiguous(), tensor._values().contiguous()
    works = [allgather_rows(part, lengths, comm) for part in parts]

    def finish(gathered: Any) -> Sequence[torch.Tensor]:
        pieces = zip(outputs, *(whole.split(lengths) for whole in gathered))
        return [replace(output, indices.t(), values) for output, indices, values in pieces]

    return Work(WorkGroup(works), finish)


def _allgather_sparse_into(output: torch.Tensor, tensor: torch.Tensor, comm: Any) -> Work:
    """Concatenate sparse tensors along their first dimension."""
    shape = (_mpi.size(comm) * tensor.shape[0], *tensor.shape[1:])
    fits = output.is_sparse and (tuple(output.shape), output.dtype) == (shape, tensor.dtype)
    problem = "" if fits else f"the output tensor needs to be sparse, with the input's type and shape {shape}"
    lengths = agree_on_rows(tensor._nnz(), rows_of(tensor), problem, comm)
    indices = tensor._indices().clone()
    indices[0] += _mpi.rank(comm) * tensor.shape[0]
    parts = indices.t().contiguous(), tensor._values().contiguous()
    works = [allgather_rows(part, lengths, comm) for part in parts]
    return Work(WorkGroup(works), lambda found: replace(output, found[0].t(), found[1]))


def replace(tensor: torch.Tensor, indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Give a sparse tensor new indices and values; returns the tensor."""
    tensor.data = sparse_of(indices, values, tensor)
    return tensor
