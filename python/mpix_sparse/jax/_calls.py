# SPDX-License-Identifier: BSD-3-Clause
"""The calls of the C library, as XLA makes them: a text that describes the call, addresses of operands and
addresses of results."""

from __future__ import annotations

import ast
import ctypes
import functools
import hashlib
import math
from typing import Any, NamedTuple, Sequence

import numpy

from .. import Error, _mpi, _problems, _types
from .._library import library
from . import _device
from ._order import wait_for_calls
from ._world import World, free_worlds, world_number

TOKEN_BYTES = 4
TEXT_BYTES = 4096  # of the description of a call


class Call(NamedTuple):
    """A call, as its text describes it. Fields are equal on all ranks, but for world, nnz and has_token.

    Attributes:
        kind: "allreduce" or "allreduce_coo".
        op: name of the reduction.
        world: number of the World.
        dtype: name of the type of elements.
        shape: shape of the array; for coordinates, shape of a row.
        has_token: True if the operand and the result before XLA's own token are a token of the user.
        index_dtype, nnz, count, capacity: for coordinates.
    """

    kind: str
    op: str
    world: int
    dtype: str
    shape: tuple[int, ...]
    has_token: bool = False
    index_dtype: str = ""
    nnz: int = 0
    count: int = 0
    capacity: int = 0

    def text(self) -> str:
        """The call as text, from which parse() makes it again: no handles, so that a compiled function is
        valid in other processes."""
        return repr(tuple(self))

    @classmethod
    def parse(cls, text: bytes) -> Call:
        """The call of a text."""
        return cls(*ast.literal_eval(text.decode()))

    def describe(self) -> str:
        """The call as users write it."""
        shape = ", ".join(map(str, self.shape))
        if self.kind == "allreduce":
            return f"allreduce({self.dtype}[{shape}], {self.op!r})"
        return (
            f"allreduce_coo({self.index_dtype} indices, {self.dtype}[{shape}] elements, {self.count}, "
            f"{self.op!r}, capacity={self.capacity})"
        )

    @property
    def numbers(self) -> int:
        """How many numbers an array or a row has."""
        return math.prod(self.shape)


class _Prepared:
    """A call with what is the same each time it runs.

    Attributes:
        signature: a number that is equal on all ranks if the calls match.
        result: handle of the C library's last result, whose memory the next one takes.
        operand_bytes, result_bytes: of coordinates.
    """

    def __init__(self, text: bytes) -> None:
        self.call = call = Call.parse(text)
        matched = repr(call._replace(world=0, nnz=0, has_token=False)).encode()
        digest = hashlib.blake2b(matched, digest_size=7).digest()
        self.signature = int.from_bytes(digest, "little")
        self.words = (ctypes.c_int64 * 2)()
        self.op = _types.operation(call.op, call.dtype)
        row = call.numbers if call.kind == "allreduce_coo" else 1
        self.datatype = _types.datatype(call.dtype, row)
        self.row_bytes = row * _types.item_size(call.dtype)
        self.result = ctypes.c_void_p()
        if call.kind == "allreduce_coo":
            index_bytes = numpy.dtype(call.index_dtype).itemsize
            self.operand_bytes = call.nnz * index_bytes, call.nnz * self.row_bytes
            self.result_bytes = call.capacity * index_bytes, call.capacity * self.row_bytes, index_bytes


_prepared: dict[bytes, _Prepared] = {}


def run(text: bytes, operands: Sequence[int], results: Sequence[int], stream: int | None = None) -> None:
    """Run a call. Collective over its communicator.

    Args:
        stream: the stream of CUDA whose work goes before; None for arrays in host memory.

    Raises:
        Error: the ranks' calls differ, or the call failed; on all ranks.
    """
    prepared = _prepared.get(text)
    if prepared is None:
        prepared = _prepared[text] = _Prepared(text)
    world = world_number(prepared.call.world)
    with world.lock:
        if stream is None:
            _agree(prepared, world)
            KINDS[prepared.call.kind](prepared, world, operands, results)
        else:
            _run_on_device(prepared, world, operands, results, stream)
    if prepared.call.has_token:
        move = ctypes.memmove if stream is None else _device.driver().copy
        move(results[-2], operands[-2], TOKEN_BYTES)


def _run_on_device(
    prepared: _Prepared, world: World, operands: Sequence[int], results: Sequence[int], stream: int
) -> None:
    """Run a call on device memory. The C library takes dense arrays where they are. Coordinates pass through
    host memory, since padding is removed and added there."""
    call, staged, problem = prepared.call, [], None
    dense = call.kind == "allreduce"
    try:
        _device.driver().synchronize(stream)
        if not dense:
            staged = _device.to_host(operands, prepared.operand_bytes)
    except Exception as reason:
        problem = reason
    _agree(prepared, world, problem)
    if dense:
        KINDS[call.kind](prepared, world, operands, results)
        return
    written = [numpy.empty(size, numpy.uint8) for size in prepared.result_bytes]
    addresses = [[array.ctypes.data for array in arrays] for arrays in (staged, written)]
    KINDS[call.kind](prepared, world, *addresses)
    _device.to_device(results, written)


def _agree(prepared: _Prepared, world: World, problem: Exception | None = None) -> None:
    """Raise an exception on all ranks unless all of them make the same call, and none has a problem."""
    if problem is not None and world.size == 1:
        raise problem
    if world.size == 1:
        return
    words = prepared.words
    signature = prepared.signature if problem is None else -1
    words[0], words[1] = signature, -signature
    _mpi.check(library.MPI_Allreduce(_mpi.IN_PLACE, words, 2, *_minimum(), world.plain))
    if problem is not None:
        raise problem
    if words[0] < 0:
        raise Error("another rank cannot read its arrays")
    if words[0] != -words[1]:
        raise Error(_describe_difference(prepared.call, world))


def _describe_difference(call: Call, world: World) -> str:
    """The calls of two ranks that differ, as a sentence; the same on all ranks. Collective."""
    mine = ctypes.create_string_buffer(call.describe().encode(), TEXT_BYTES)
    every = ctypes.create_string_buffer(world.size * TEXT_BYTES)
    part = ctypes.c_int(TEXT_BYTES), _mpi.constant("BYTE")
    _mpi.check(library.MPI_Allgather(mine, *part, every, *part, world.plain))
    starts = range(0, len(every), TEXT_BYTES)
    calls = [every.raw[start : start + TEXT_BYTES].rstrip(b"\0").decode() for start in starts]
    other = next(rank for rank, text in enumerate(calls) if text != calls[0])
    return f"the calls of ranks differ: {calls[0]} on rank 0, and {calls[other]} on rank {other}"


@functools.lru_cache(maxsize=None)
def _minimum() -> tuple[Any, Any]:
    return _types.datatype("int64"), _types.operation("min")


def _allreduce(prepared: _Prepared, world: World, operands: Sequence[int], results: Sequence[int]) -> None:
    call = prepared.call
    if call.numbers == 0:
        return
    source, target = ctypes.c_void_p(operands[0]), ctypes.c_void_p(results[0])
    arguments = ctypes.c_longlong(call.numbers), prepared.datatype, prepared.op, world.comm(call.dtype)
    _mpi.check(library.MPIX_Sparse_allreduce(source, target, *arguments))


def _allreduce_coo(
    prepared: _Prepared, world: World, operands: Sequence[int], results: Sequence[int]
) -> None:
    call = prepared.call
    indices, values, nnz, problem = numpy.empty(0), numpy.empty(0), _problems.REFUSED_NUMBER, None
    try:
        indices, values, nnz = _without_padding(prepared, *operands[:2])
    except Exception as reason:
        problem = reason
    elements = ctypes.c_void_p(indices.ctypes.data), ctypes.c_void_p(values.ctypes.data)
    numbers = ctypes.c_longlong(nnz), _types.datatype(call.index_dtype), ctypes.c_longlong(call.count)
    comm, text = world.comm(call.dtype), "" if problem is None else f"{type(problem).__name__}: {problem}"
    rest = prepared.datatype, prepared.op, comm, ctypes.byref(prepared.result)
    code = library.MPIX_Sparse_allreduce_coo(*elements, *numbers, *rest)
    try:
        _problems.check(code, text, comm)
    except ValueError:
        assert problem is not None
        raise problem from None
    _write_result(prepared, *results[:3])


def _array(address: int, dtype: Any, count: int) -> numpy.ndarray:
    """A view of memory."""
    dtype = numpy.dtype(dtype)
    if count == 0 or dtype.itemsize == 0:
        return numpy.empty(count, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(memory, dtype)


def _without_padding(prepared: _Prepared, indices: int, values: int) -> tuple[Any, Any, int]:
    """Indices, values and their number, without elements whose index is count."""
    call = prepared.call
    all_indices = _array(indices, call.index_dtype, call.nnz)
    rows = _array(values, f"V{prepared.row_bytes}", call.nnz)
    keep = all_indices != call.count
    if not keep.all():
        all_indices, rows = all_indices[keep], rows[keep]
    return all_indices, rows, len(all_indices)


def _write_result(prepared: _Prepared, indices: int, values: int, nnz: int) -> None:
    """Write the C library's result, with padding, to XLA's memory.

    Raises:
        Error: the result has more elements than capacity; so it has on all ranks.
    """
    call = prepared.call
    found, their_indices, their_values = ctypes.c_longlong(), ctypes.c_void_p(), ctypes.c_void_p()
    outputs = ctypes.byref(found), ctypes.byref(their_indices), ctypes.byref(their_values)
    _mpi.check(library.MPIX_Sparse_result_get(prepared.result, *outputs))
    if found.value > call.capacity:
        raise Error(
            f"the result has {found.value} elements, and capacity is {call.capacity}; pass a larger capacity"
        )
    target = _array(indices, call.index_dtype, call.capacity)
    target[: found.value] = _array(their_indices.value or 0, call.index_dtype, found.value)
    target[found.value :] = call.count
    used = found.value * prepared.row_bytes
    ctypes.memmove(values, their_values, used)
    ctypes.memset(values + used, 0, call.capacity * prepared.row_bytes - used)
    _array(nnz, call.index_dtype, 1)[0] = found.value


KINDS = {"allreduce": _allreduce, "allreduce_coo": _allreduce_coo}


def _finish() -> None:
    """Free results and communicators, after the calls in flight."""
    wait_for_calls()
    while _prepared:
        _, prepared = _prepared.popitem()
        library.MPIX_Sparse_result_free(ctypes.byref(prepared.result))
    free_worlds()


_mpi.add_finalize_hook(_finish)
