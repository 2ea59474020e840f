# SPDX-License-Identifier: BSD-3-Clause
"""Detects that no rank can go on, and aborts all ranks.

A rank that ends tells rank 0, and waits until all ranks end. A rank that has waited in a call of this package
for DEADLOCK_SECONDS, without the completion of a call, tells rank 0 too. Rank 0 then asks all ranks that have
not ended what they do, until one of them goes on. Rank 0 aborts all ranks if

- a rank has ended, and all others have waited for LIMIT_SECONDS since then; they can wait only for that rank.
  Where communicators of some ranks are in use, or another thread runs, a long call may still complete: then
  the next line holds, or the limit is UNCLEAR_LIMIT_SECONDS;
- all ranks wait or have ended, and no call in flight has been started by all of its ranks (_counts.py).
  Ranks have waited for LIMIT_SECONDS if one has ended, for DEADLOCK_SECONDS if not. Two rounds of answers are
  equal, so that all answers hold at one time. A thread that has never called this package may make its first
  call: if a rank has one, ranks have waited for UNCLEAR_LIMIT_SECONDS. If one has ended, another that tests a
  call again and again, is idle in a backward pass, or has threads that wait for another one, waits as well,
  after POLL_LIMIT_SECONDS.

A rank that computes, such as one that still writes a file, does not wait, so the job goes on.

A thread of each rank answers. It looks for messages every IDLE_SECONDS. There is no watchdog without
MPI_THREAD_MULTIPLE. If another library, such as mpi4py, has initialised MPI, the watchdog starts in the first
collective call on a communicator of all ranks, and a rank ends when Python does, before mpi4py finalizes MPI,
or when the program calls MPI_Finalize.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import sys
import threading
import time
from typing import Any, Iterator, NamedTuple, NoReturn, Sequence

from . import _counts, _frames, _mpi, _pending
from ._library import address, library

LIMIT_SECONDS = 2.0
DEADLOCK_SECONDS = 3.0  # if no rank has ended
UNCLEAR_LIMIT_SECONDS = 30.0  # if other threads or communicators may complete what the ranks wait for
POLL_LIMIT_SECONDS = 3.0  # if programs test calls, rather than wait for them
IDLE_SECONDS = 0.25
ACTIVE_SECONDS = 0.05  # between two looks for messages after a rank has ended, or waits for long
ROUND_SECONDS = 0.25  # from one question of rank 0 to the next
OUTPUT_SECONDS = 0.5  # launchers lose output that is written right before an abort
ABORT_SECONDS = 3  # after which a process that MPI_Abort has not ended exits by itself

_ENDED, _WAITS, _ASK, _ANSWER = range(4)  # kinds of messages
_ANY_SOURCE = ctypes.c_int(-1 if _mpi._OPEN_MPI else -2)
_MESSAGE_BYTES = 1 << 16
_SHOWN = 4  # calls in a sentence

exit_process = os._exit  # before this package replaces it
_nowhere = open(os.devnull, "w", encoding="ascii")  # kept: later there may be no descriptor


def abort(reason: str, status: int) -> NoReturn:
    """Print a sentence and abort all ranks of MPI_COMM_WORLD. Not collective."""
    faulthandler.dump_traceback_later(ABORT_SECONDS, file=_nowhere, exit=True)
    sys.stdout.flush()
    print(f"mpix_sparse: {reason}", file=sys.stderr, flush=True)
    time.sleep(OUTPUT_SECONDS)
    library.MPI_Abort(_mpi.WORLD, ctypes.c_int(status))
    exit_process(status)


class _Answer(NamedTuple):
    """What a rank does.

    Attributes:
        waited: seconds in one call; 0 if it waits in none.
        is_sure: it starts no calls until a call in flight completes.
        callers_wait: it is sure, apart from threads that have never called this package.
        may_wait: it is sure, or the program tests a call again and again, is idle in a backward pass, or has
            other threads that wait for a thread.
        uses_parts: it has communicators of some ranks only.
        completed: number of calls that have completed.
        text: its call, and where that is in the program.
        calls: see state() in _counts.py; None if there are too many.
    """

    waited: float
    is_sure: bool
    callers_wait: bool
    may_wait: bool
    uses_parts: bool
    completed: int
    text: str
    calls: Any

    def is_equal(self, other: _Answer) -> bool:
        """True if the rank has done nothing between two answers."""
        same = self.uses_parts, self.completed, self.calls
        return same == (other.uses_parts, other.completed, other.calls) and self.is_sure == other.is_sure


class _WaitTimer:
    """Measures how long this process has waited in a call. Samples are taken by update()."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget earlier samples."""
        self._seen, self._since, self._activity = (-1, -1), 0.0, None
        self._polls, self._polled = _pending.polls, False

    def update(self) -> None:
        """Sample all threads."""
        self._activity, seen = _frames.Activity(_counts.callers), (_mpi.calls_completed, _counts.total())
        self._polled, self._polls = self._polls != _pending.polls, _pending.polls
        if self._seen != seen or not self._waits():
            self._seen, self._since = seen, time.monotonic()

    def _waits(self) -> bool:
        """True if the last sample was in a call, or idle, or calls have been tested since the one before."""
        found = self._activity
        return found is not None and (found.is_in_call or found.may_wait or self._polled)

    def seconds(self) -> float:
        """The time for which all samples were in calls or between tests of them, and no call has started or
        completed."""
        return time.monotonic() - self._since if self._waits() else 0.0

    def answer(self) -> _Answer:
        """What this rank does."""
        if self._activity is None:
            self.update()
        activity, calls = self._activity, _counts.state(self._activity.is_blocked)
        return _Answer(
            self.seconds(),
            activity.surely_waits,
            activity.callers_wait,
            self._polled or activity.may_wait,
            _mpi.uses_parts,
            _mpi.calls_completed,
            activity.text,
            calls if len(json.dumps(calls)) < _MESSAGE_BYTES // 2 else None,
        )


class _Watchdog:
    """One rank's part: its messages and, on rank 0, the state of all ranks."""

    def __init__(self, comm: Any) -> None:
        self._comm = _mpi.Handle()
        _mpi.check(library.MPI_Comm_dup(comm, ctypes.byref(self._comm)))
        self._rank, self._size = _mpi.rank(comm), _mpi.size(comm)
        self.pid = os.getpid()
        self._timer = _WaitTimer()
        self._wait_is_reported = False  # this rank has told rank 0 that it waits
        self._is_active = False  # a rank has ended, or waits for long
        self._is_running = True  # this rank has not ended
        self._ended: dict[int, Any] = {}  # the calls of ranks that have ended
        self._unanswered: set[int] = set()  # ranks whose answers are missing
        self._round_start = 0.0
        self._restart = False  # a rank has ended, so that earlier answers and waits do not count
        self._answers: dict[int, _Answer] = {}  # of this round
        self._last: dict[int, _Answer] = {}  # of the round before
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=_frames.WATCHDOG, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(ACTIVE_SECONDS if self._is_active else IDLE_SECONDS):
            if not _mpi.is_initialized():
                return
            self._step()

    def _send(self, kind: int, rank: int, content: Any = None) -> None:
        message = json.dumps([kind, self._rank, content]).encode()
        where = _mpi.constant("BYTE"), ctypes.c_int(rank), ctypes.c_int(0), self._comm
        library.MPI_Send(message, ctypes.c_int(len(message)), *where)

    def _receive(self) -> Iterator[Sequence[Any]]:
        flag, where = ctypes.c_int(), (_ANY_SOURCE, ctypes.c_int(0), self._comm)
        while library.MPI_Iprobe(*where, ctypes.byref(flag), _mpi.STATUS_IGNORE) == 0 and flag.value:
            message = ctypes.create_string_buffer(_MESSAGE_BYTES)
            what = message, ctypes.c_int(_MESSAGE_BYTES), _mpi.constant("BYTE")
            library.MPI_Recv(*what, *where, _mpi.STATUS_IGNORE)
            yield json.loads(message.value)

    def _step(self) -> None:
        """Receive and answer messages."""
        if self._is_running:
            self._timer.update()
            self._report_wait()
        for kind, sender, content in self._receive():
            if kind == _ENDED:
                self._ended[sender] = content
                self._restart = self._is_active = True
            elif kind == _WAITS:
                self._is_active = True
            elif kind == _ANSWER:
                self._answers[sender] = _Answer(*content)
            elif kind == _ASK and self._is_running:
                self._answer(content)
            self._unanswered.discard(sender)
        if self._is_active and self._rank == 0:
            self._check_all()

    def _report_wait(self) -> None:
        """Tell rank 0 once that this rank waits. The last rank that begins to wait tells it last."""
        if self._timer.seconds() < DEADLOCK_SECONDS:
            self._wait_is_reported, self._is_active = False, self._is_active and self._rank == 0
        elif not self._wait_is_reported:
            self._wait_is_reported = self._is_active = True
            if self._rank != 0:
                self._send(_WAITS, 0)

    def _answer(self, restart: bool) -> None:
        if restart:
            self._timer.restart()
        self._is_active = True
        self._send(_ANSWER, 0, self._timer.answer())

    def _check_all(self) -> None:
        """On rank 0, after a round of answers: abort if no rank can go on, else ask again."""
        if self._unanswered or time.monotonic() < self._round_start + ROUND_SECONDS:
            return
        self._round_start = time.monotonic()
        others = set(range(self._size)) - set(self._ended)
        if self._is_running:
            self._answers[0] = self._timer.answer()
        if others == set(self._answers) and not self._restart:
            self._abort_if_stuck()
            if not self._ended and any(each.waited < DEADLOCK_SECONDS for each in self._answers.values()):
                self._is_active = False
        self._last, self._answers = self._answers, {}
        if not self._is_active:
            return
        for rank in others - {0}:
            self._unanswered.add(rank)
            self._send(_ASK, rank, self._restart)
        if self._restart:
            self._restart = False
            self._timer.restart()

    def _abort_if_stuck(self) -> None:
        """Abort all ranks if none can go on."""
        answers = self._answers
        waited = min((each.waited for each in answers.values()), default=0.0)
        limit = LIMIT_SECONDS if self._ended else DEADLOCK_SECONDS
        if waited < (limit if all(each.is_sure for each in answers.values()) else POLL_LIMIT_SECONDS):
            return
        is_clear = all(each.is_sure and not each.uses_parts for each in answers.values())
        is_late = is_clear or waited >= UNCLEAR_LIMIT_SECONDS
        if self._ended and (is_late or self._needs_ended()) or self._is_deadlock():
            abort(_sentence(sorted(self._ended), {rank: each.text for rank, each in answers.items()}), 1)

    def _states(self) -> dict[int, Any]:
        """The calls of all ranks."""
        return {**self._ended, **{rank: each.calls for rank, each in self._answers.items()}}

    def _needs_ended(self) -> bool:
        """True if a rank waits for ranks that have ended, whatever its other threads do."""
        return _counts.needs_ended(self._states(), set(self._answers), set(self._ended))

    def _is_deadlock(self) -> bool:
        """True if no call in flight can complete, and two rounds of answers are equal."""
        answers, last, states = self._answers, self._last, self._states()
        is_late = all(each.waited >= UNCLEAR_LIMIT_SECONDS for each in answers.values())
        return (
            all(
                each.is_sure or is_late and each.callers_wait or self._ended and each.may_wait
                for each in answers.values()
            )
            and all(rank in last and each.is_equal(last[rank]) for rank, each in answers.items())
            and None not in states.values()
            and _counts.is_deadlock(states, set(answers))
        )

    def wait_for_end(self) -> None:
        """Wait until all ranks have called this function. Collective over MPI_COMM_WORLD."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._is_running, calls = False, self._timer.answer().calls
        self._ended[self._rank] = calls
        self._restart = self._is_active = True
        self._answers.pop(self._rank, None)
        if self._rank != 0:
            self._send(_ENDED, 0, calls)
        self._wait_for_all()
        library.MPI_Comm_free(ctypes.byref(self._comm))

    def _wait_for_all(self) -> None:
        """Wait for a barrier. Rank 0 comes to it when all have told that they end: it asks none of them any
        more, and its last questions are there when the others leave."""
        request, flag, tests = _mpi.constant("REQUEST_NULL"), ctypes.c_int(), 0
        is_in_barrier = False
        while not flag.value:
            self._step()
            if not is_in_barrier and (self._rank != 0 or len(self._ended) == self._size):
                _mpi.check(library.MPI_Ibarrier(self._comm, ctypes.byref(request)))
                is_in_barrier = True
            time.sleep(min(1e-4 * tests, ACTIVE_SECONDS / 2))
            tests += 1
            if is_in_barrier:
                _mpi.check(library.MPI_Test(ctypes.byref(request), ctypes.byref(flag), _mpi.STATUS_IGNORE))
        self._step()  # receives a question that this rank's message has crossed


def _numbers(ranks: Sequence[int]) -> str:
    """Ranks in words, at most ten."""
    shown = ", ".join(map(str, ranks[:10])) + (", ..." if len(ranks) > 10 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _calls(texts: dict[int, str]) -> str:
    """The calls of ranks in words."""
    by_text: dict[str, list[int]] = {}
    for rank, text in sorted(texts.items()):
        by_text.setdefault(text or "a call", []).append(rank)
    shown = [f"{_numbers(ranks)} in {text}" for text, ranks in list(by_text.items())[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(by_text) > _SHOWN else "")


def _sentence(ended: Sequence[int], texts: dict[int, str]) -> str:
    waiting = sorted(texts)
    if not ended:
        return (
            f"all ranks wait in calls that cannot complete: {_calls(texts)}; so all ranks are aborted; all "
            "ranks must make the same calls, of one package and on the same communicators, in the same order"
        )
    have, wait = ("has", "have")[len(ended) > 1], ("waits", "wait")[len(waiting) > 1]
    return (
        f"{_numbers(ended)} {have} ended, and {_numbers(waiting)} {wait} in a call of this package that "
        f"cannot complete ({_calls(texts)}), so all ranks are aborted; all ranks must make the same calls"
    )


_watchdog: _Watchdog | None = None


def _start(comm: Any = None) -> None:
    global _watchdog
    handle = _mpi.communicator(comm)
    if not _counts.is_registered(_mpi.WORLD):
        _counts.register(_mpi.WORLD, "of the program")
    if _mpi.size(handle) > 1 and _mpi.allows_threads():
        _watchdog = _Watchdog(handle)


_DeleteFunction = ctypes.CFUNCTYPE(ctypes.c_int, _mpi.Handle, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_keyval: Any = None  # of an attribute of MPI_COMM_SELF, which MPI_Finalize deletes before all else


@_DeleteFunction
def _on_finalize(comm: Any, keyval: int, value: Any, extra: Any) -> int:
    global _keyval
    _keyval = None
    wait_for_end()
    return 0


def _start_in_call(comm: Any) -> None:
    """Start if another library has initialised MPI, and this is a communicator of all ranks. Collective over
    comm. First calls of several threads have no order that is equal on all ranks, so only those of main
    threads start it."""
    global _keyval
    if threading.current_thread() is not threading.main_thread():
        return
    inter = ctypes.c_int()
    _mpi.check(library.MPI_Comm_test_inter(comm, ctypes.byref(inter)))
    if _watchdog is not None or _mpi.is_ours() or inter.value or _mpi.size(comm) < _mpi.size():
        return
    _start(comm)
    keyval, null_copy = ctypes.c_int(), ctypes.c_void_p(address(library, "OMPI_C_MPI_COMM_NULL_COPY_FN"))
    self_comm = _mpi.constant("COMM_SELF")
    _mpi.check(library.MPI_Comm_create_keyval(null_copy, _on_finalize, ctypes.byref(keyval), None))
    _mpi.check(library.MPI_Comm_set_attr(self_comm, keyval, None))
    _keyval = keyval


def wait_for_end() -> None:
    """Wait for calls in flight, and until all ranks end. Collective over MPI_COMM_WORLD. If the other ranks
    wait in calls instead, all ranks are aborted."""
    global _watchdog, _keyval
    if _watchdog is None or _watchdog.pid != os.getpid() or not _mpi.is_initialized():
        return
    ending, _watchdog = _watchdog, None
    _pending.wait_for_all()
    ending.wait_for_end()
    if _keyval is not None:  # Python may have ended when MPI_Finalize is called
        keyval, _keyval = _keyval, None
        _mpi.check(library.MPI_Comm_delete_attr(_mpi.constant("COMM_SELF"), keyval))


_mpi.add_init_hook(_start)
_mpi.add_first_call_hook(_start_in_call)
_mpi.add_end_hook(wait_for_end)
