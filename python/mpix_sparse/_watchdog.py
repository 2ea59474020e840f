# SPDX-License-Identifier: BSD-3-Clause
"""Detects that a rank has ended while all others wait in a call, and aborts them.

A rank that ends tells rank 0, and waits until all ranks end. From then on rank 0 asks the other ranks whether
they wait in a call of this package, without the completion of a call for LIMIT_SECONDS after the last end of
a rank. If each has ended or waits, no rank can release another, and rank 0 aborts all. A rank that computes,
such as one that still writes a file, does not wait, so the job goes on. A long call on a communicator without
the ranks that have ended may still complete. So the limit is longer where such communicators are in use.

A thread of each rank answers. Before a rank ends it sends nothing, and looks for a message every
IDLE_SECONDS. There is no watchdog without MPI_THREAD_MULTIPLE. If another library, such as mpi4py, has
initialised MPI, the watchdog starts in the first collective call on a communicator of all ranks, and a rank
ends when Python does, before mpi4py finalizes MPI, or when the program calls MPI_Finalize.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
import threading
import time
from typing import Any, Iterator, NoReturn, Sequence

from . import _mpi, _pending
from ._library import address, library

LIMIT_SECONDS = 2.0
PARTS_LIMIT_SECONDS = 30.0  # if there are communicators of some ranks only
IDLE_SECONDS = 0.25
ACTIVE_SECONDS = 0.05  # between two looks for messages after a rank has ended
ROUND_SECONDS = 0.25  # from one question of rank 0 to the next
OUTPUT_SECONDS = 0.5  # launchers lose output that is written right before an abort
ABORT_SECONDS = 3  # after which a process that MPI_Abort has not ended exits by itself

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ENDED, _ASK, _ANSWER = range(3)  # kinds of messages
_ANY_SOURCE = ctypes.c_int(-1 if _mpi._OPEN_MPI else -2)
_Message = ctypes.c_longlong * 3  # kind, sender, 1 if the sender waits or a wait starts anew

exit_process = os._exit  # before this package replaces it


def abort(reason: str, status: int) -> NoReturn:
    """Print a sentence and abort all ranks of MPI_COMM_WORLD. Not collective."""
    faulthandler.dump_traceback_later(ABORT_SECONDS, file=open(os.devnull, "w"), exit=True)
    sys.stdout.flush()
    print(f"mpix_sparse: {reason}", file=sys.stderr, flush=True)
    time.sleep(OUTPUT_SECONDS)
    library.MPI_Abort(_mpi.WORLD, ctypes.c_int(status))
    exit_process(status)


def _depth(frame: Any) -> int:
    """The number of innermost frames of a thread that are functions of this package."""
    depth = 0
    while frame is not None and frame.f_code.co_filename.startswith(_FOLDER):
        depth, frame = depth + 1, frame.f_back
    return depth


def _is_in_call() -> bool:
    """True if a thread runs a function of this package. The package's own threads are idle in their outermost
    function."""
    own = {thread.ident for thread in threading.enumerate() if thread.name.startswith("mpix_sparse")}
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return any(_depth(frame) > (ident in own) for ident, frame in frames.items())


def limit() -> float:
    """Seconds in a call after which this process is taken to wait forever if a rank has ended."""
    return PARTS_LIMIT_SECONDS if _mpi.uses_parts else LIMIT_SECONDS


class _WaitTimer:
    """Measures how long this process has waited in a call. Samples are taken by update()."""

    def __init__(self) -> None:
        self._completed, self._since = -1, 0.0

    def update(self) -> None:
        """Sample all threads."""
        if self._completed != _mpi.calls_completed or not _is_in_call():
            self._completed, self._since = _mpi.calls_completed, time.monotonic()

    def is_over(self) -> bool:
        """True if all samples within the limit were in calls, and no call has completed."""
        return time.monotonic() - self._since >= limit()


class _Watchdog:
    """One rank's part: its messages and, on rank 0, the state of all ranks."""

    def __init__(self, comm: Any) -> None:
        self._comm = _mpi.Handle()
        _mpi.check(library.MPI_Comm_dup(comm, ctypes.byref(self._comm)))
        self._rank, self._size = _mpi.rank(comm), _mpi.size(comm)
        self.pid = os.getpid()
        self._timer: _WaitTimer | None = None  # set when a rank has ended
        self._here = True  # this rank has not ended
        self._ended: set[int] = set()
        self._asked: set[int] = set()  # ranks whose answers are missing
        self._asked_at = 0.0
        self._restart = False  # a rank has ended, so that earlier answers and waits do not count
        self._waiting: set[int] = set()  # ranks that have answered in this round that they wait
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mpix_sparse watchdog", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(ACTIVE_SECONDS if self._timer else IDLE_SECONDS) and _mpi.is_initialized():
            self._step()

    def _send(self, kind: int, rank: int, flag: bool = False) -> None:
        message = _Message(kind, self._rank, flag)
        where = _mpi.constant("BYTE"), ctypes.c_int(rank), ctypes.c_int(0), self._comm
        library.MPI_Send(message, ctypes.c_int(ctypes.sizeof(message)), *where)

    def _receive(self) -> Iterator[Sequence[int]]:
        flag, where = ctypes.c_int(), (_ANY_SOURCE, ctypes.c_int(0), self._comm)
        while library.MPI_Iprobe(*where, ctypes.byref(flag), _mpi.STATUS_IGNORE) == 0 and flag.value:
            message = _Message()
            what = message, ctypes.c_int(ctypes.sizeof(message)), _mpi.constant("BYTE")
            library.MPI_Recv(*what, *where, _mpi.STATUS_IGNORE)
            yield message

    def _step(self) -> None:
        """Receive and answer messages."""
        if self._timer and self._here:
            self._timer.update()
        for kind, sender, flag in self._receive():
            if kind == _ENDED:
                self._ended.add(sender)
                self._restart = True
            elif kind == _ANSWER and flag:
                self._waiting.add(sender)
            elif kind == _ASK and self._here:
                self._timer = None if flag else self._timer
                self._send(_ANSWER, 0, self._waits())
            self._asked.discard(sender)
        if self._ended and self._rank == 0:
            self._check_all()

    def _waits(self) -> bool:
        if self._timer is None:
            self._timer = _WaitTimer()
            self._timer.update()
        return self._timer.is_over()

    def _check_all(self) -> None:
        """On rank 0, after a round of answers: abort if no rank can go on, else ask again."""
        here_waits = self._here and self._waits()
        if self._asked or time.monotonic() < self._asked_at + ROUND_SECONDS:
            return
        self._asked_at = time.monotonic()
        others = set(range(self._size)) - self._ended
        waiting = self._waiting | ({0} if here_waits else set())
        if others and others <= waiting and not self._restart:
            abort(_sentence(sorted(self._ended), sorted(others)), 1)
        self._waiting.clear()
        for rank in others - {0}:
            self._asked.add(rank)
            self._send(_ASK, rank, self._restart)
        if self._restart:
            self._restart, self._timer = False, None

    def leave(self) -> None:
        """Wait until all ranks have called this function. Collective over MPI_COMM_WORLD."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._here = False
        self._ended.add(self._rank)
        self._restart = True
        if self._rank != 0:
            self._send(_ENDED, 0)
        self._wait_for_all()
        library.MPI_Comm_free(ctypes.byref(self._comm))

    def _wait_for_all(self) -> None:
        request, flag, tests = _mpi.constant("REQUEST_NULL"), ctypes.c_int(), 0
        _mpi.check(library.MPI_Ibarrier(self._comm, ctypes.byref(request)))
        while not flag.value:
            self._step()
            time.sleep(min(1e-4 * tests, ACTIVE_SECONDS / 2))
            tests += 1
            _mpi.check(library.MPI_Test(ctypes.byref(request), ctypes.byref(flag), _mpi.STATUS_IGNORE))
        self._step()  # receives a question that this rank's message has crossed


def _numbers(ranks: Sequence[int]) -> str:
    """Ranks in words, at most ten."""
    shown = ", ".join(map(str, ranks[:10])) + (", ..." if len(ranks) > 10 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _sentence(ended: Sequence[int], waiting: Sequence[int]) -> str:
    have, wait = ("has", "have")[len(ended) > 1], ("waits", "wait")[len(waiting) > 1]
    return (
        f"{_numbers(ended)} {have} ended, and {_numbers(waiting)} {wait} in a call of this package that "
        "cannot complete, so all ranks are aborted; all ranks must make the same calls"
    )


_watchdog: _Watchdog | None = None


def _start(comm: Any = None) -> None:
    global _watchdog
    handle = _mpi.communicator(comm)
    if _mpi.size(handle) > 1 and _mpi.allows_threads():
        _watchdog = _Watchdog(handle)


_DeleteFunction = ctypes.CFUNCTYPE(ctypes.c_int, _mpi.Handle, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_keyval: Any = None  # of an attribute of MPI_COMM_SELF, which MPI_Finalize deletes before all else


@_DeleteFunction
def _on_finalize(comm: Any, keyval: int, value: Any, extra: Any) -> int:
    global _keyval
    _keyval = None
    leave()
    return 0


def _start_in_call(comm: Any) -> None:
    """Start if another library has initialised MPI, and this is a communicator of all ranks. Collective over
    comm."""
    global _keyval
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


def leave() -> None:
    """Wait for calls in flight, and until all ranks end. Collective over MPI_COMM_WORLD. If the other ranks
    wait in calls instead, all ranks are aborted."""
    global _watchdog, _keyval
    if _watchdog is None or _watchdog.pid != os.getpid() or not _mpi.is_initialized():
        return
    leaving, _watchdog = _watchdog, None
    _pending.wait_for_all()
    leaving.leave()
    if _keyval is not None:  # Python may have ended when MPI_Finalize is called
        keyval, _keyval = _keyval, None
        _mpi.check(library.MPI_Comm_delete_attr(_mpi.constant("COMM_SELF"), keyval))


_mpi.add_init_hook(_start)
_mpi.add_first_call_hook(_start_in_call)
_mpi.add_leave_hook(leave)
