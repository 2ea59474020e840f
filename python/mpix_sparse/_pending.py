# SPDX-License-Identifier: BSD-3-Clause
"""Calls in flight. The library writes into their buffers until they are complete. So a call whose handle was
deleted keeps its buffers alive, until a later call or finalize() finds it complete."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import warnings
from typing import Any, Callable, Sequence

from . import _counts, _frames, _mpi, _problems
from ._library import library

SPINS = 1000  # tests of a call before wait() sleeps between tests
polls = 0  # tests of all calls that threads of the program have made, in waits too
_NO_REQUEST = _mpi.constant("REQUEST_NULL").value
OTHERS_EVERY = 20  # tests of a call before wait() tests all others too


class PendingCall:
    """One call in flight.

    Args:
        keep: objects that the call needs alive.
        finish: creates the result when the call is complete; None if there is none.
        problem: this rank's error in the arguments; empty if there is none.
    """

    __slots__ = (
        *("request", "complete", "_keep_alive", "_finish", "_result", "_problem", "_error", "_lock"),
        "_counted",
    )
    _is_failing = False  # True if _fail() has begun and is not complete

    def __init__(self, keep: Any, finish: Callable[[], Any] | None, problem: str = "") -> None:
        self.request = _mpi.Handle(_NO_REQUEST)
        self.complete = False
        self._keep_alive = keep
        self._finish = finish
        self._result: Any = None
        self._problem = problem
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._counted: Any = None  # counts of calls, and the number of this one

    def begin(self, code: int) -> Handle:
        """Register the started call and return its handle; code is the error code of the start.

        Raises:
            Error: the call has not started; ValueError, if the problem was this rank's.
        """
        if code != 0:
            if self._problem:
                raise ValueError(self._problem)
            _mpi.check(code)
        if _counts.started:
            self._counted = _counts.take()
        if _abandoned:
            _reap()
        pending_calls.add(self)
        return Handle(self)

    def end(self, code: int) -> Handle:
        """End the call, which was a blocking one, and return its handle; code is the call's error code."""
        self._end(code)
        self.wait()
        return Handle(self)

    def test(self) -> bool:
        """True if the call is complete. Makes progress on all calls in flight. Returns False while another
        thread tests the call."""
        if self.complete:
            return True
        if not self._lock.acquire(blocking=False):
            return False
        try:
            flag = ctypes.c_int()
            code = library.MPI_Test(ctypes.byref(self.request), ctypes.byref(flag), _mpi.STATUS_IGNORE)
            if flag.value or code != 0:
                self._end(code)
        finally:
            self._lock.release()
        return self.complete

    def _end(self, code: int) -> None:
        if self.complete or ((code != 0 or self._is_failing) and not self._fail(code)):
            return
        if self._error is None and self._finish is not None:
            self._result = self._finish()
        self._keep_alive = self._finish = None
        self.complete = True
        _mpi.calls_completed += 1
        if self._counted is not None:
            counts, number = self._counted
            counts.end(number)
        pending_calls.discard(self)

    def _fail(self, code: int) -> bool:
        """Set the error of a call that has failed; returns True. If it returns False, test() calls it again,
        with code 0."""
        self._error = ValueError(self._problem) if self._problem else _problems.error_of(code)
        return True

    def wait(self) -> None:
        """Wait until the call is complete."""
        tests = 0
        while not self.test():
            tests += 1
            if tests % OTHERS_EVERY == 0:
                self.test_others()
            # The shortest sleep takes tens of microseconds, so sleep only in long waits.
            if tests < SPINS:
                os.sched_yield()
            else:
                time.sleep(0)

    def test_others(self) -> None:
        """Make progress on all other calls. A test of one of MPI's own calls makes none on the library's,
        which another rank may wait for."""
        global polls
        _counts.callers.add(threading.get_ident())
        polls += not threading.current_thread().name.startswith(_frames.OWN)
        for pending in list(pending_calls):
            if pending is not self:
                pending.test()

    def result(self) -> Any:
        """The result of the call, or its exception; the call must be complete."""
        if self._error is not None:
            raise self._error
        return self._result


pending_calls: set[PendingCall] = set()  # calls that are not known to be complete
_abandoned: set[PendingCall] = set()


def _reap() -> None:
    """Forget calls that are complete and whose handles were deleted."""
    for pending in list(_abandoned):
        if pending.test():
            _abandoned.discard(pending)


def finish_abandoned(pending: PendingCall | None) -> None:
    """Wait for a call, if there is one and its handle was deleted before it was complete."""
    if pending in _abandoned:
        pending.wait()
        _reap()


def in_flight() -> bool:
    """True if a call is in flight. Makes progress on all of them."""
    for pending in list(pending_calls):
        pending.test()
    return bool(pending_calls)


def wait_for_all() -> None:
    """Wait for all calls in flight."""
    while pending_calls:
        for pending in list(pending_calls):
            pending.test()


_mpi.add_finalize_hook(wait_for_all)


class Handle:
    """A call in flight.

    Its buffers belong to the library until it is complete: do not write to any of them, nor read `out`. They
    stay alive even if the handle is deleted. wait() and done() make progress on all calls in flight. Without
    the hint progress=thread, calls make progress only there.
    """

    def __init__(self, pending: PendingCall) -> None:
        self._pending = pending

    def done(self) -> bool:
        """True if the call is complete. Not collective; never waits."""
        if not self._pending.test():
            self._pending.test_others()
        return self._pending.complete

    def wait(self) -> Any:
        """Wait for the call and return the result of the blocking call. May be called again.

        Every rank must call wait(), or done() until it is True. Handles may be waited for in any order. An
        interrupt (KeyboardInterrupt) leaves the call in flight and the handle usable.

        Raises:
            Error: the call failed, on every rank.
        """
        self._pending.wait()
        return self._pending.result()

    def __del__(self) -> None:
        pending = getattr(self, "_pending", None)
        if pending is not None and not pending.complete:
            _abandoned.add(pending)
            warnings.warn("a handle was dropped before its call was complete", ResourceWarning, stacklevel=2)


def wait_all(handles: Sequence[Handle]) -> list[Any]:
    """Wait for several handles and return their results, in the same order.

    Raises:
        TypeError: what is given is not a sequence of handles; no call is waited for.
        Error: the first error, raised after all calls are complete.
    """
    if not isinstance(handles, Sequence) or not all(isinstance(handle, Handle) for handle in handles):
        raise TypeError(f"a sequence of handles is needed, not {handles!r}")
    for handle in handles:
        handle._pending.wait()
    return [handle.wait() for handle in handles]
