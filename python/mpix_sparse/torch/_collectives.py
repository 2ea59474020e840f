# SPDX-License-Identifier: BSD-3-Clause
"""Communication without a reduction: broadcasts and gathers of dense and sparse tensors, and scatters and
messages of dense ones."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any, Sequence

import torch

from .. import _mpi, _types
from .._error import Error
from .._library import library
from ._agree import agree, describe, start_compared
from ._nonblocking import (
    MAX_ELEMENTS,
    allgather_into,
    elements,
    gather_rows,
    put_back,
    start_call,
)
from ._tensors import on_host, sparse_of, type_of
from ._work import Work, WorkGroup
from ._world import World

_CHUNK = 1 << 30  # bytes in one broadcast; MPI counts in int
_TYPE_BYTES = 64  # of the description of a message
_NO_BUFFER = ctypes.c_void_p(), ctypes.c_int(0), _types.datatype("uint8")  # on ranks other than the root


def _list_problem(what: str, pieces: Sequence[torch.Tensor], tensor: torch.Tensor, ranks: World) -> str:
    """The error in a list that must have a tensor of this size and type for each rank; empty if there is
    none."""
    if len(pieces) != ranks.size:
        return f"the {what} list has {len(pieces)} tensors; it needs one for each of {ranks.size} ranks"
    for piece in pieces:
        if piece.layout != torch.strided:
            return f"the {what} list has a tensor of layout {piece.layout}; it needs dense ones"
        if (piece.numel(), piece.dtype) != (tensor.numel(), tensor.dtype):
            theirs, ours = (f"{other.numel()} x {type_of(other)}" for other in (piece, tensor))
            return f"the {what} list has a tensor of {theirs} for one of {ours}"
    return ""


def _layout_problem(tensor: torch.Tensor) -> str:
    dense = tensor.layout == torch.strided
    return "" if dense else f"a tensor of layout {tensor.layout} cannot be sent here; a dense one can"


def _tensor_problem(tensor: torch.Tensor, count: int) -> str:
    """The error in a tensor of which `count` elements, with those of all ranks, are sent; empty if there is
    none."""
    if tensor.layout != torch.strided:
        return _layout_problem(tensor)
    if not _types.is_known(type_of(tensor)):
        return f"a tensor of type {type_of(tensor)} cannot be sent"
    if count > MAX_ELEMENTS:
        return f"a tensor of {count} elements; one of at most {MAX_ELEMENTS} can be sent"
    return ""


def barrier(ranks: World, later: bool = True) -> Work:
    """Start a barrier."""
    start = lambda comm: start_call(library.MPI_Ibarrier, comm, keep=None, finish=lambda: None)  # noqa: E731
    return start_compared("barrier()", start, ranks, later=later)


def broadcast_bytes(address: int, count: int, root: int, comm: Any, keep: Any, result: Any = None) -> Work:
    """Start to broadcast the bytes of a buffer, which is part of `keep`."""
    works = []
    for first in range(0, count, _CHUNK):
        piece = ctypes.c_void_p(address + first), ctypes.c_int(min(_CHUNK, count - first))
        how = _mpi.constant("BYTE"), ctypes.c_int(root), comm
        works.append(start_call(library.MPI_Ibcast, *piece, *how, keep=keep, finish=lambda: None))
    return Work(WorkGroup(works), lambda _: result)


def broadcast(tensor: torch.Tensor, root: int, ranks: World, later: bool = True) -> Work:
    """Start to overwrite a tensor with the root's. Sparse tensors may have different elements before; their
    call blocks to compare shapes and types. See start_compared() for `later`.

    Raises:
        ValueError: sizes, types, layouts or roots differ, a layout is unknown, or the root is not a rank; on
            all ranks.
    """
    if tensor.is_sparse:
        return _broadcast_sparse(tensor, root, ranks)

    def start(comm: Any) -> Work:
        buffer = on_host(tensor)
        size = buffer.numel() * buffer.element_size()
        work = broadcast_bytes(buffer.data_ptr(), size, root, comm, buffer)
        return Work(work, lambda _: put_back(buffer, tensor), comm)

    problem = _layout_problem(tensor) or root_problem(root, ranks)
    text = describe("broadcast", tensor, f"root {root}")
    return start_compared(text, start, ranks, problem, later=later)


def root_problem(root: Any, ranks: World) -> str:
    """What is wrong with a root; empty if nothing is."""
    if not hasattr(root, "__index__"):
        return f"the root is {root!r}; it must be the number of a rank"
    return "" if 0 <= root < ranks.size else f"the root is {root}, and ranks are 0 to {ranks.size - 1}"


def allgather(
    outputs: Sequence[torch.Tensor], tensor: torch.Tensor, ranks: World, later: bool = True
) -> Work:
    """Start to copy every rank's tensor, all of one shape, into outputs[rank].

    Raises:
        ValueError: outputs do not have one tensor of this size for each rank, or sizes or types differ; on
            all ranks.
    """
    if tensor.is_sparse:
        return _allgather_sparse(outputs, tensor, ranks)
    count = len(outputs) * tensor.numel()
    problem = _list_problem("output", outputs, tensor, ranks) or _tensor_problem(tensor, count)

    def start(comm: Any) -> Work:
        flat = tensor.new_empty((len(outputs), tensor.numel()), device="cpu")
        return allgather_into(flat, tensor, comm, lambda: _split_into(flat, outputs))

    return start_compared(describe("all_gather", tensor), start, ranks, problem, later=later)


def allgather_single(output: torch.Tensor, tensor: torch.Tensor, ranks: World, later: bool = True) -> Work:
    """Start to concatenate the tensors of all ranks, all of one shape, in one output.

    Raises:
        ValueError: the output has another size or type, or sizes or types differ; on all ranks.
    """
    if tensor.is_sparse:
        return _allgather_sparse_single(output, tensor, ranks)
    count = ranks.size * tensor.numel()
    problem = _tensor_problem(tensor, count) or _tensor_problem(output, count)
    if (output.numel(), output.dtype) != (count, tensor.dtype):
        theirs, ours = f"{output.numel()} x {type_of(output)}", f"{count} x {type_of(tensor)}"
        problem = problem or f"the output tensor has {theirs}; those of all ranks make {ours}"

    def start(comm: Any) -> Work:
        buffer = on_host(output)
        return allgather_into(buffer, tensor, comm, lambda: put_back(buffer, output))

    return start_compared(describe("all_gather", tensor), start, ranks, problem, later=later)


def _split_into(flat: torch.Tensor, outputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    for piece, output in zip(flat, outputs):
        output.detach().copy_(piece.view(output.shape))
    return outputs


def gather(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, root: int, ranks: World) -> Work:
    """Start to copy every rank's tensor into an output on the root; other ranks pass no outputs.

    Raises:
        ValueError: outputs and tensors do not match on some rank; on all ranks.
    """
    problem = _list_problem("output", outputs, tensor, ranks) if ranks.rank == root else ""
    problem = _tensor_problem(tensor, ranks.size * tensor.numel()) or problem

    def start(comm: Any) -> Work:
        buffer = on_host(tensor)
        flat = tensor.new_empty((len(outputs), tensor.numel()), device="cpu")
        receive_buffer = elements(flat, buffer.numel()) if outputs else _NO_BUFFER
        arguments = *elements(buffer), *receive_buffer, ctypes.c_int(root), comm
        finish = lambda: _split_into(flat, outputs)  # noqa: E731
        return start_call(library.MPI_Igather, *arguments, keep=(buffer, flat), finish=finish)

    return start_compared(describe("gather", tensor, f"root {root}"), start, ranks, problem, always=True)


def gather_single(output: torch.Tensor, tensor: torch.Tensor, root: int, ranks: World) -> Work:
    """Start to concatenate the tensors of all ranks in the root's output. Raises as gather() does."""
    pieces, made = [], output
    if ranks.rank == root:
        made = output.detach()
        dense = output.layout == torch.strided
        if dense and not output.is_contiguous():
            made = made.clone(memory_format=torch.contiguous_format)
        even = dense and output.numel() % ranks.size == 0
        pieces = list(made.view(ranks.size, output.numel() // ranks.size).unbind(0)) if even else [made]
    finish = lambda _: put_back(made, output)  # noqa: E731
    return Work(gather(pieces, tensor, root, ranks), finish)


def scatter(tensor: torch.Tensor, inputs: Sequence[torch.Tensor], root: int, ranks: World) -> Work:
    """Start to overwrite each rank's tensor with the root's inputs[rank]; other ranks pass no inputs. Raises
    as gather() does."""
    problem = _list_problem("input", inputs, tensor, ranks) if ranks.rank == root else ""
    problem = _tensor_problem(tensor, ranks.size * tensor.numel()) or problem

    def start(comm: Any) -> Work:
        buffer = on_host(tensor)
        flat = torch.stack([on_host(piece).view(-1) for piece in inputs]) if inputs else None
        source = _NO_BUFFER if flat is None else elements(flat, buffer.numel())
        arguments = *source, *elements(buffer), ctypes.c_int(root), comm
        finish = lambda: put_back(buffer, tensor)  # noqa: E731
        return start_call(library.MPI_Iscatter, *arguments, keep=(buffer, flat), finish=finish)

    return start_compared(describe("scatter", tensor, f"root {root}"), start, ranks, problem, always=True)


def refuse_tag(tag: int) -> None:
    """Raise ValueError for a tag that is no tag of MPI."""
    if not 0 <= tag <= _mpi.max_tag():
        raise ValueError(f"the tag is {tag}; it must be from 0 to {_mpi.max_tag()}")


def _message(rank: int, tag: int, comm: Any) -> tuple[Any, ...]:
    """The arguments of MPI that name the other rank of a message, and its tag."""
    if not 0 <= rank < _mpi.size(comm):
        raise ValueError(f"the other rank is {rank}, and ranks are 0 to {_mpi.size(comm) - 1}")
    refuse_tag(tag)
    return ctypes.c_int(rank), ctypes.c_int(tag), comm


def _describe(tensor: torch.Tensor) -> str:
    return f"{type_of(tensor)} of {tensor.numel()} elements"


def send(tensor: torch.Tensor, rank: int, tag: int, comm: Any, types: Any = None) -> Work:
    """Start to send a tensor to a rank, which receives one of its shape and type.

    Args:
        types: the communicator on which a description of the tensor is sent too; None to send none. The same
            as in receive().
    """
    buffer = on_host(tensor)
    arguments = *elements(buffer), *_message(rank, tag, comm)
    if types is not None:
        text = ctypes.create_string_buffer(_describe(tensor).encode(), _TYPE_BYTES)
        _start_message(library.MPI_Isend, text, rank, tag, types)
    return start_call(library.MPI_Isend, *arguments, keep=buffer, finish=lambda: tensor, ordered=False)


def _start_message(function: Any, text: Any, rank: int, tag: int, comm: Any) -> Work:
    """Start to send, or to receive, a description."""
    arguments = text, ctypes.c_int(_TYPE_BYTES), _mpi.constant("BYTE"), *_message(rank, tag, comm)
    return start_call(function, *arguments, keep=text, finish=lambda: text.value.decode(), ordered=False)


def receive(tensor: torch.Tensor, rank: int, tag: int, comm: Any, types: Any = None) -> Work:
    """Start to overwrite a tensor with one that a rank sends. See send() for `types`.

    Raises:
        ValueError: the rank sends a tensor of another type or size. Raised by wait(), with `types`.
    """
    buffer = on_host(tensor)
    arguments = *elements(buffer), *_message(rank, tag, comm)
    finish = lambda: put_back(buffer, tensor)  # noqa: E731
    if types is None:
        return start_call(library.MPI_Irecv, *arguments, keep=buffer, finish=finish, ordered=False)
    text = _start_message(library.MPI_Irecv, ctypes.create_string_buffer(_TYPE_BYTES), rank, tag, types)
    data = start_call(library.MPI_Irecv, *arguments, keep=buffer, finish=finish, ordered=False)
    return Work(_TypedMessage(text, data, rank, _describe(tensor)), lambda made: made)


class _TypedMessage:
    """The handle of a receive, and of the description of what is sent."""

    def __init__(self, text: Work, data: Work, rank: int, expected: str) -> None:
        self._text, self._data, self._rank, self._expected = text, data, rank, expected

    def done(self) -> bool:
        """True if both have arrived, or the second one is in error."""
        return self._text.done() and self._data.done()

    def wait(self) -> torch.Tensor:
        """Wait for both; returns the tensor."""
        sent = self._text.wait()
        try:
            made = self._data.wait()
        except Error:  # the message is too long
            if sent == self._expected:
                raise
        if sent != self._expected:
            raise ValueError(f"rank {self._rank} sends {sent}, and this rank receives {self._expected}")
        return made


def pickled(obj: Any) -> tuple[bytes, str]:
    """Pickle an object: its bytes, or the text of the error."""
    try:
        return pickle.dumps(obj), ""
    except Exception as reason:  # objects define how they are pickled, so any exception is possible
        return b"", f"the object cannot be pickled: {reason}"


def _agree_on_sparse(function: str, tensor: torch.Tensor, problem: str, ranks: World, *how: Any) -> list[int]:
    """The number of elements of each rank's sparse tensor. Collective; blocks.

    Raises:
        ValueError: a rank has a problem, or makes another call; on all ranks.
    """
    dimensions = f"{tensor.sparse_dim()} sparse dimensions"
    return agree(describe(function, tensor, *how, dimensions), problem, ranks, tensor._nnz())


def _broadcast_sparse(tensor: torch.Tensor, root: int, ranks: World) -> Work:
    problem = root_problem(root, ranks)
    nnz = _agree_on_sparse("broadcast", tensor, problem, ranks, f"root {root}")[root]
    indices, values = tensor._indices(), tensor._values()
    if ranks.rank != root:  # new ones, since other tensors may share the old ones
        indices, values = indices.new_empty(len(indices), nnz), values.new_empty(nnz, *values.shape[1:])
    parts = [on_host(part.contiguous()) for part in (indices, values)]
    sizes = [part.numel() * part.element_size() for part in parts]
    works = [
        broadcast_bytes(part.data_ptr(), size, root, ranks.plain, part, part)
        for part, size in zip(parts, sizes)
    ]
    return Work(WorkGroup(works), lambda parts: replace(tensor, *parts))


def _allgather_sparse(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, ranks: World) -> Work:
    fits = len(outputs) == ranks.size and all(output.shape == tensor.shape for output in outputs)
    problem = "" if fits else "the output list needs a tensor of this shape for each rank"
    lengths = _agree_on_sparse("all_gather", tensor, problem, ranks)
    works = _gather_parts(tensor._indices(), tensor._values(), lengths, ranks)

    def finish(gathered: Any) -> Sequence[torch.Tensor]:
        pieces = zip(outputs, *(whole.split(lengths) for whole in gathered))
        return [replace(output, indices.t(), values) for output, indices, values in pieces]

    return Work(works, finish)


def _allgather_sparse_single(output: torch.Tensor, tensor: torch.Tensor, ranks: World) -> Work:
    """Concatenate sparse tensors along their first dimension."""
    shape = (ranks.size * tensor.shape[0], *tensor.shape[1:])
    fits = output.is_sparse and (tuple(output.shape), output.dtype) == (shape, tensor.dtype)
    problem = "" if fits else f"the output tensor needs to be sparse, with the input's type and shape {shape}"
    lengths = _agree_on_sparse("all_gather", tensor, problem, ranks)
    indices = tensor._indices().clone()
    indices[0] += ranks.rank * tensor.shape[0]
    works = _gather_parts(indices, tensor._values(), lengths, ranks)
    return Work(works, lambda found: replace(output, found[0].t(), found[1]))


def _gather_parts(
    indices: torch.Tensor, values: torch.Tensor, lengths: Sequence[int], ranks: World
) -> WorkGroup:
    """Start to gather indices, a row for each element, and values."""
    parts = indices.t().contiguous(), values.contiguous()
    return WorkGroup([gather_rows(part, lengths, ranks.plain) for part in parts])


def replace(tensor: torch.Tensor, indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Give a sparse tensor new indices and values; returns the tensor."""
    tensor.data = sparse_of(indices, values, tensor)
    return tensor
