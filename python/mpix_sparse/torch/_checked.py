# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the C library that fail on all ranks if ranks make different calls. The C library finds that by
itself, and names values of two ranks. Then ranks send each other descriptions of their calls, so that the
exception names both calls. Only a call that fails pays for this."""

from __future__ import annotations

import ctypes
import re
import sys
import time
from typing import Any, Callable

from .. import _mpi
from .._error import Error
from .._library import library
from .._pending import Handle, PendingCall
from ._world import World, total

SECONDS = 3  # wait for descriptions; one is missing only if another rank's call has none
_TAGS = 1 << 15
_TEXT_BYTES = 2000
_PROBLEM = "!"  # first character of a text that describes an error in a rank's arguments
_BYTE = _mpi.constant("BYTE")


_START = re.compile(r"\bMPIX_Sparse_plan_start(_coo)?\b(?!:)")
_CALLER = "\n"  # first character of the caller behind a text
_MODULES = "torch.distributed.", "mpix_sparse.torch."
_CALLERS = "_object", "_object_list", "_optimizer_state"  # ends of names


def _caller() -> str:
    """The outermost function that makes this call for the program, such as one on objects; empty if there is
    none."""
    found, frame = "", sys._getframe(1)
    while frame is not None:
        name, module = frame.f_code.co_name, frame.f_globals.get("__name__", "")
        if module.startswith(_MODULES) and name.endswith(_CALLERS):
            found = f"{_CALLER}{name}()"
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _of_torch(sentence: str) -> str:
    """A sentence of the C library, in which a start of a plan is one of an optimizer or of a hook."""
    return _START.sub("a step of DistributedOptimizer or ddp_comm_hook", sentence)


def _spoken(text: str) -> str:
    call, _, caller = text.partition(_CALLER)
    return f"{call} in {caller}" if caller else call


class MismatchError(Error, ValueError):
    """Ranks make different calls, or a rank has an error in its arguments. On all ranks; the text names both
    sides."""


class _Exchange:
    """Texts of all ranks about one call, in flight. Messages have the number of the call, since ranks may
    find the errors of several calls in different orders."""

    def __init__(self, ranks: World, number: int, text: str) -> None:
        self._comm, self._tag = ranks.compared, number % _TAGS
        self.texts = {ranks.rank: text}
        self._missing = [rank for rank in range(ranks.size) if rank != ranks.rank]
        data = text.encode()[:_TEXT_BYTES]
        self._sends = [self._send(ctypes.create_string_buffer(data, _TEXT_BYTES), to) for to in self._missing]
        self._end = time.monotonic() + SECONDS

    def _send(self, buffer: Any, rank: int) -> Handle:
        pending = PendingCall(buffer, lambda: None)
        how = ctypes.c_int(_TEXT_BYTES), _BYTE, ctypes.c_int(rank), ctypes.c_int(self._tag), self._comm
        return pending.begin(library.MPI_Isend(buffer, *how, ctypes.byref(pending.request)))

    def done(self) -> bool:
        """True if all texts have arrived, or the time is over. Never waits."""
        self._missing = [rank for rank in self._missing if not self._receive(rank)]
        if time.monotonic() > self._end:
            return True
        return not self._missing and all(send.done() for send in self._sends)

    def _receive(self, rank: int) -> bool:
        flag, buffer = ctypes.c_int(), ctypes.create_string_buffer(_TEXT_BYTES)
        where = ctypes.c_int(rank), ctypes.c_int(self._tag), self._comm
        _mpi.check(library.MPI_Iprobe(*where, ctypes.byref(flag), _mpi.STATUS_IGNORE))
        if flag.value:
            how = ctypes.c_int(_TEXT_BYTES), _BYTE, *where, _mpi.STATUS_IGNORE
            _mpi.check(library.MPI_Recv(buffer, *how))
            self.texts[rank] = buffer.value.decode(errors="replace")
        return bool(flag.value)


def _sentence(texts: dict[int, str]) -> str:
    """The first error of a rank, or the first difference; empty if there is none."""
    ordered = sorted(texts.items())
    for rank, text in ordered:
        if text.startswith(_PROBLEM):
            return f"rank {rank} has an error in its arguments: {text[len(_PROBLEM):]}"
    first, mine = ordered[0]
    for rank, text in ordered:
        if text.partition(_CALLER)[0] != mine.partition(_CALLER)[0]:
            calls = f"rank {first} calls {_spoken(mine)}, and rank {rank} calls {_spoken(text)}"
            return f"calls differ between ranks: {calls}"
    return ""


class CheckedCall(PendingCall):
    """A call of the C library in flight, which compares arguments. Collective: all calls on the communicator
    of `ranks` are of this class.

    Args:
        text: a function and its arguments, which returns a description of this rank's call for errors.
        keep, finish: as for PendingCall.
        problem: the error in this rank's arguments; empty if there is none.
        number: of a call that was counted already.
    """

    __slots__ = "_ranks", "_text", "_number", "_exchange", "_is_failing"

    def __init__(
        self,
        ranks: World,
        text: tuple[Any, ...],
        keep: Any,
        finish: Callable[[], Any] | None = None,
        problem: str = "",
        number: int = 0,
    ) -> None:
        PendingCall.__init__(self, keep, finish, problem)
        self._number = number or self.count(ranks)
        self._ranks, self._text, self._is_failing = ranks, text, False

    @staticmethod
    def count(ranks: World) -> int:
        """Count a call before it starts; returns its number. It is of this class unless it succeeds."""
        total.calls += 1
        ranks.calls += 1
        return ranks.calls

    def _fail(self, code: int) -> bool:
        if not self._is_failing:
            if not _mpi.is_mismatch(code):
                return super()._fail(code)
            self._begin_exchange(Error(_of_torch(_mpi.error_string(code)), code))
        return self._end_exchange()

    def _begin_exchange(self, error: Error) -> None:
        """Send the description of this call to the other ranks, all of which do the same. `error` is for the
        case that they do not differ."""
        describe, *arguments = self._text
        text = _PROBLEM + self._problem if self._problem else describe(*arguments) + _caller()
        self._exchange = error, _Exchange(self._ranks, self._number, text)
        self._is_failing = True

    def _end_exchange(self) -> bool:
        error, exchange = self._exchange
        if not exchange.done():
            return False
        texts = {self._ranks.numbers[rank]: text for rank, text in exchange.texts.items()}
        sentence = _sentence(texts) or str(error)
        self._error = ValueError(self._problem) if self._problem else MismatchError(sentence, error.code)
        return True
