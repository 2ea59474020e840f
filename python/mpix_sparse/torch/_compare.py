# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of arguments between ranks in calls that do not block: one small MPI_Iallreduce, which finds the
least and the greatest of numbers that must be equal, and a rank of each."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, NamedTuple, Sequence

import torch

from .. import _mpi
from .._library import library
from .._pending import PendingCall
from ._agree import refuse
from ._deferred import DeferredCall
from ._progress import watch
from ._tensors import type_of
from ._work import Work
from ._world import World

_RANKS = 1 << 20  # more than there are
_MOST = 1 << 42  # numbers of at most this absolute value are compared
_INT64, _MAX = _mpi.constant("INT64_T"), _mpi.constant("MAX")
_FUNCTIONS = "barrier", "broadcast", "all_gather", "gather", "scatter"
_DTYPES = sorted(
    {str(each)[len("torch.") :] for each in vars(torch).values() if isinstance(each, torch.dtype)}
)
_LAYOUTS = "dense", "sparse"


class Field(NamedTuple):
    """A number that must be equal on all ranks.

    Attributes:
        name: its name in errors.
        describe: its description in errors.
    """

    name: str
    number: int
    describe: Callable[[int], Any] = int


def _encode(fields: Sequence[Field], rank: int) -> list[int]:
    """Two numbers for each field: the maximum over ranks has the greatest number, and the least one negated,
    each with the lowest rank that has it."""
    last = _RANKS - 1 - rank
    bounded = [max(-_MOST, min(field.number, _MOST)) for field in fields]
    return [sign * number * _RANKS + last for number in bounded for sign in (1, -1)]


def _find_difference(fields: Sequence[Field], found: Sequence[int]) -> str:
    """The first field that differs between ranks, as a sentence; empty if there is none."""
    pairs = [divmod(number, _RANKS) for number in found]
    for field, (most, last), (negative, other) in zip(fields, pairs[::2], pairs[1::2]):
        if most != -negative:
            sides = sorted(((_RANKS - 1 - last, most), (_RANKS - 1 - other, -negative)))
            here, there = (f"{field.describe(number)} on rank {rank}" for rank, number in sides)
            return f"argument {field.name} differs between ranks: {here} and {there}"
    return ""


class _Maximum(PendingCall):
    """The maximum of numbers over all ranks, in flight."""

    def __init__(self, numbers: Sequence[int], comm: Any) -> None:
        self.found = (ctypes.c_longlong * len(numbers))(*numbers)
        super().__init__(self.found, lambda: None)
        how = ctypes.c_int(len(numbers)), _INT64, _MAX, comm, ctypes.byref(self.request)
        self.handle = self.begin(library.MPI_Iallreduce(_mpi.IN_PLACE, self.found, *how))


class Comparison:
    """The handle of a comparison. Collective over comm; it may be in flight together with other calls.

    Args:
        fields: the same on all ranks but for their numbers. The first one that differs is in the error.
        problem: the error in this rank's arguments; empty if there is none.
    """

    def __init__(self, fields: Sequence[Field], comm: Any, problem: str = "") -> None:
        self._fields, self._problem = [Field("", int(bool(problem))), *fields], problem
        self._maximum = _Maximum(_encode(self._fields, _mpi.rank(comm)), comm)

    def done(self) -> bool:
        """True if the comparison is complete. Makes progress on all calls in flight."""
        return self._maximum.handle.done()

    def wait(self) -> None:
        """Wait for the comparison.

        Raises:
            ValueError: a rank has a problem, or a number differs; on all ranks. The text names two of them.
        """
        self._maximum.wait()
        refuse(self._problem)
        most, last = divmod(self._maximum.found[0], _RANKS)
        if most:
            raise ValueError(f"rank {_RANKS - 1 - last} has an error in its arguments")
        refuse(_find_difference(self._fields, self._maximum.found))


def start_compared(
    function: str,
    start: Callable[[Any], Work],
    ranks: World,
    tensor: torch.Tensor | None = None,
    root: int = 0,
    problem: str = "",
    always: bool = False,
    later: bool = True,
) -> Work:
    """Start a call of MPI when the arguments have been compared. Collective; does not block.

    Args:
        function: its name, one of _FUNCTIONS.
        start: starts the call on a communicator.
        tensor: the tensor whose size, type and layout are equal on all ranks; None if there is none.
        root: the root, or 0.
        problem: the error in this rank's arguments; empty if there is none.
        later: the program does not wait for the call at once, so that a thread makes progress on it.
        always: compare also if ranks.checks is False, since MPI would write past the end of a buffer.

    Returns:
        Work, whose wait() raises ValueError on all ranks if arguments differ.

    Raises:
        ValueError: there is a problem, and ranks do not compare arguments. Only on this rank.
    """
    if ranks.size == 1 or not (ranks.checks or always):
        refuse(problem)
        return start(ranks.plain)
    comparison = Comparison(_fields(function, tensor, root), ranks.plain, problem)
    call = DeferredCall(ranks.plain, comparison, lambda: start(ranks.compared))
    if later:
        watch()
    return Work(call, lambda result: result, ranks.plain)


def _fields(function: str, tensor: torch.Tensor | None, root: int) -> list[Field]:
    count, dtype, layout = 0, 0, 0
    if tensor is not None:
        count, dtype, layout = tensor.numel(), _DTYPES.index(type_of(tensor)), int(tensor.is_sparse)
    return [
        Field("function", _FUNCTIONS.index(function), _FUNCTIONS.__getitem__),
        Field("root", root),
        Field("layout", layout, _LAYOUTS.__getitem__),
        Field("datatype", dtype, _DTYPES.__getitem__),
        Field("count", count),
    ]
