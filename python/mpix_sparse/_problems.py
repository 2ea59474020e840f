# SPDX-License-Identifier: BSD-3-Clause
"""Errors that one rank finds in its arguments before a blocking collective call. The rank makes the call with
an argument that all ranks refuse. Then ranks send each other the errors, so that all exceptions name it."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable

from . import _mpi
from ._error import Error
from ._library import library

_TEXT_BYTES = 400
REFUSED_SCHEME = "refused"  # no scheme has this name
REFUSED_NUMBER = -1  # of elements


def _code_of(call: Callable[[Any], int]) -> int:
    """The code of an error, which is the same in all calls with that error. Local."""
    alone = _mpi.Handle()
    _mpi.check(library.MPI_Comm_dup(_mpi.constant("COMM_SELF"), ctypes.byref(alone)))
    _mpi.check(library.MPI_Comm_set_errhandler(alone, _mpi.constant("ERRORS_RETURN")))
    code = call(alone)
    _mpi.check(library.MPI_Comm_free(ctypes.byref(alone)))
    return code


def refused_arguments(comm: Any) -> tuple[Any, ...]:
    """The arguments of an allreduce of coordinates that all ranks refuse, since nnz is negative."""
    number, nnz = _mpi.constant("INT32_T"), ctypes.c_longlong(REFUSED_NUMBER)
    elements = None, None, nnz, number, ctypes.c_longlong(1)
    return *elements, number, _mpi.constant("SUM"), comm, ctypes.byref(ctypes.c_void_p())


@functools.lru_cache(maxsize=None)
def nnz_code() -> int:
    """The code of the error that nnz is negative."""
    return _code_of(lambda comm: library.MPIX_Sparse_allreduce_coo(*refused_arguments(comm)))


@functools.lru_cache(maxsize=None)
def part_code() -> int:
    """The code of the error that the number of elements of a part is negative."""

    def call(comm: Any) -> int:
        number, buffer = _mpi.constant("INT32_T"), (ctypes.c_int * 2)()
        how = ctypes.c_longlong(REFUSED_NUMBER), number, _mpi.constant("SUM"), comm
        return library.MPIX_Sparse_reduce_scatter(buffer, ctypes.byref(buffer, 4), *how)

    return _code_of(call)


@functools.lru_cache(maxsize=None)
def hint_code() -> int:
    """The code of an error in a hint."""

    def call(comm: Any) -> int:
        with _mpi.Info({"scheme": REFUSED_SCHEME}) as info:
            return library.MPIX_Sparse_comm_set_info(comm, info)

    return _code_of(call)


def _gather(problem: str, comm: Any) -> list[str]:
    """The problem of each rank. Collective."""
    size = _mpi.size(comm)
    mine = ctypes.create_string_buffer(problem.encode()[: _TEXT_BYTES - 1], _TEXT_BYTES)
    every = ctypes.create_string_buffer(size * _TEXT_BYTES)
    part = ctypes.c_int(_TEXT_BYTES), _mpi.constant("BYTE")
    _mpi.check(library.MPI_Allgather(mine, *part, every, *part, comm))
    pieces = (every.raw[i * _TEXT_BYTES : (i + 1) * _TEXT_BYTES] for i in range(size))
    return [piece.rstrip(b"\0").decode(errors="replace") for piece in pieces]


def error_of(code: int) -> Error:
    """The exception of a nonblocking call that has failed, on a rank without a problem. Not collective."""
    sentence = _mpi.error_string(code)  # MPI keeps the last text of a code
    if code == nnz_code():
        sentence += "; the exception of that rank names the error in its arguments"
    return Error(sentence, code)


def exchange(code: int, problem: str, comm: Any) -> list[str]:
    """The problem of each rank after a call that has failed; nothing if it failed for another reason.
    Collective."""
    return _gather(problem, comm) if code in (nnz_code(), part_code(), hint_code()) else []


def check(code: int, problem: str, comm: Any) -> None:
    """Raise the exception of a blocking collective call that has failed; nothing if it has not.

    Args:
        code: the error code of the call.
        problem: the error in this rank's arguments; empty if there is none.
        comm: the communicator of the call.

    Raises:
        ValueError: there is a problem.
        Error: there is another error, or a problem on another rank.
    """
    if code == 0 and not problem:
        return
    sentence = _mpi.error_string(code)  # MPI keeps the last text of a code
    theirs = exchange(code, problem, comm)
    if problem:
        raise ValueError(problem)
    for rank, text in enumerate(theirs):
        if text:
            raise Error(f"rank {rank} has an error in its arguments: {text}", code)
    raise Error(sentence, code)
