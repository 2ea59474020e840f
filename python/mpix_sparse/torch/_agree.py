# SPDX-License-Identifier: BSD-3-Clause
"""Agreement on calls, so that an error on one rank, or different calls, are an exception on all.

All functions begin with a call of the C library on one communicator, which compares function, count, type, op
and label of the ranks' calls. An allreduce is that call itself. Other functions begin with an Agreement: an
allreduce of a few numbers, which has a label of its own, and whose maximum tells if descriptions are equal. A
rank that cannot start its call begins an Agreement too, so that the others get an exception."""

from __future__ import annotations

import ctypes
import zlib
from typing import Any, Callable

import torch

from .. import _mpi
from .._error import Error
from .._library import library
from ._checked import CheckedCall
from ._deferred import DeferredCall
from ._progress import watch
from ._tensors import type_of
from ._work import Work
from ._world import World

# Labels of calls. A sum has none. One is negative, so that the call is left out of reports.
AVERAGE, _AGREEMENT = ctypes.c_int(1), ctypes.c_int(-1)
_FIRST, _END = 2, 1 << 31  # labels of label_of()

_INT64, _MAX = _mpi.constant("INT64_T"), _mpi.constant("MAX")
_NUMBERS = 3  # of the description; then one of each rank


def refuse(problem: str) -> None:
    """Raise ValueError with a problem, unless it is empty."""
    if problem:
        raise ValueError(problem)


def describe(function: str, tensor: torch.Tensor, *how: Any) -> str:
    """The description of a call on a tensor whose size, type and layout are equal on all ranks."""
    size = f"of shape {tuple(tensor.shape)}" if tensor.is_sparse else f"of {tensor.numel()} elements"
    layout = "sparse " if tensor.is_sparse else ""
    return f"{function}({''.join(f'{each}, ' for each in how)}{layout}{type_of(tensor)} {size})"


def label_of(number: int) -> Any:
    """The label of a call that differs from others with equal arguments by a number, such as a checksum."""
    return ctypes.c_int(_FIRST + number % (_END - _FIRST))


def text_and_label(text: str) -> tuple[Any, Any]:
    """The argument `group` of start_allreduce() for a call with a description: it, and a label by its
    checksum."""
    return (str, text), label_of(zlib.crc32(text.encode()))


class Agreement(CheckedCall):
    """A comparison of descriptions in flight. Collective.

    Args:
        text: the description of this rank's call, equal on all ranks.
        problem: the error in this rank's arguments; empty if there is none.
        number: a number that may differ between ranks. All ranks pass one, or none.
    """

    __slots__ = "_found", "_indices", "_values"

    def __init__(self, ranks: World, text: str, problem: str = "", number: int | None = None) -> None:
        super().__init__(ranks, (str, text), None, self._numbers, problem)
        checksum, is_numbered = zlib.crc32(text.encode()), number is not None
        length = _NUMBERS + is_numbered
        self._indices = (ctypes.c_longlong * length)(0, 1, 2, *[_NUMBERS + ranks.rank] * is_numbered)
        self._values = (ctypes.c_longlong * length)(
            bool(problem), checksum, -checksum, *[number] * is_numbered
        )
        self._found = ctypes.c_void_p()

    def start(self) -> Any:
        """Start it and return its handle."""
        ranks = self._ranks
        _mpi.check(library.MPIX_Sparse_comm_set_label(ranks.plain, _AGREEMENT))
        elements = self._indices, self._values, ctypes.c_longlong(len(self._indices))
        how = _INT64, ctypes.c_longlong(_NUMBERS + ranks.size), _INT64, _MAX, ranks.plain
        outputs = ctypes.byref(self._found), ctypes.byref(self.request)
        return self.begin(library.MPIX_Isparse_allreduce_coo(*elements, *how, *outputs))

    def _result_values(self) -> Any:
        nnz, indices, values = ctypes.c_longlong(), ctypes.c_void_p(), ctypes.c_void_p()
        where = ctypes.byref(nnz), ctypes.byref(indices), ctypes.byref(values)
        _mpi.check(library.MPIX_Sparse_result_get(self._found, *where))
        return (ctypes.c_longlong * nnz.value).from_address(values.value)

    def _numbers(self) -> list[int]:
        """The number of each rank, if ranks passed one."""
        return list(self._result_values()[_NUMBERS:])

    def _end(self, code: int) -> None:
        if code == 0 and not (self.complete or self._is_failing):
            wrong, most, negative = self._result_values()[:_NUMBERS]
            if wrong or most != -negative:
                self._begin_exchange(Error("ranks make different calls"))
        super()._end(code)
        if self.complete and self._found:
            _mpi.check(library.MPIX_Sparse_result_free(ctypes.byref(self._found)))


def agree(text: str, problem: str, ranks: World, number: int = 0) -> list[int]:
    """Check that all ranks make the same call. Collective; blocks.

    Args:
        text: its description, with all that must be equal on all ranks.
        problem: the error in this rank's arguments; empty if there is none.
        number: a number that may differ between ranks.

    Returns:
        The number of each rank.

    Raises:
        ValueError: a rank makes another call or has a problem. On all ranks; the text names both sides, or
            the problem and its rank.
    """
    if ranks.size > 1:
        return Agreement(ranks, text, problem, number).start().wait()
    refuse(problem)
    return [number]


def start_compared(
    text: str,
    start: Callable[[Any], Work],
    ranks: World,
    problem: str = "",
    always: bool = False,
    later: bool = True,
) -> Work:
    """Start a call of MPI when descriptions have been compared. Collective; does not block.

    Args:
        text: the description of the call, with all that must be equal on all ranks.
        start: starts the call on a communicator.
        problem: the error in this rank's arguments; empty if there is none.
        always: compare also if ranks.checks is False, since MPI would write past the end of a buffer.
        later: the program does not wait for the call at once, so that a thread makes progress on it.

    Returns:
        Work, whose wait() raises ValueError on all ranks if descriptions differ.

    Raises:
        ValueError: there is a problem, and ranks do not compare arguments. Only on this rank.
    """
    if ranks.size == 1 or not (ranks.checks or always):
        refuse(problem)
        return start(ranks.plain)
    call = start_deferred(text, lambda: start(ranks.compared), ranks, problem, later)
    return Work(call, lambda result: result, ranks.plain)


def start_deferred(
    text: str, start: Callable[[], Any], ranks: World, problem: str = "", later: bool = True
) -> DeferredCall:
    """Start to compare descriptions and, when they are equal, a call; see start_compared()."""
    call = DeferredCall(ranks.plain, Agreement(ranks, text, problem).start(), start)
    if later:
        watch()
    return call
