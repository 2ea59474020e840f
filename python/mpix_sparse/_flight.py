# SPDX-License-Identifier: BSD-3-Clause
"""Calls in flight. The library writes into their buffers until they are complete, so a call that nobody waits
for keeps them alive all the same, until a later call, or the end, finds it complete."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import warnings
from typing import Any, Callable, Sequence

from . import _mpi
from ._error import Error
from ._library import library

TESTS = 1000  # of a call before whoever waits for it sleeps between them


class Flight:
    """One call in flight: its MPI request, what it needs alive, how to make its outcome, and what this rank
    knows to be wrong with it."""

    def __init__(self, keep: Any, finish: Callable[[], Any], wrong: str = "") -> None:
        self.request = _mpi.constant("REQUEST_NULL")
        self.complete = False
        self._keep = keep
        self._finish: Callable[[], Any] | None = finish
        self._outcome: Any = None
        self._wrong = wrong
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def begin(self, code: int) -> Handle:
        """Take note that the call has been started, with the code that starting it gave.

        Raises:
            Error: it was not.
        """
        _mpi.check(code)
        _sweep()
        _flights.add(self)
        return Handle(self)

    def test(self) -> bool:
        """Whether the call is complete; lets all calls in flight move. False too while another thread
        asks."""
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
        if self.complete:
            return
        if code != 0:
            self._error = ValueError(self._wrong) if self._wrong else Error(_mpi.sentence(code), code)
        elif self._finish is not None:
            self._outcome = self._finish()
        self._keep = self._finish = None
        self.complete = True
        _flights.discard(self)

    def land(self) -> None:
        """Wait until the call is complete."""
        tests = 0
        while not self.test():
            tests += 1
            # Sleeping takes tens of microseconds, however short: that is for waits that last.
            if tests < TESTS:
                os.sched_yield()
            else:
                time.sleep(0)

    def outcome(self) -> Any:
        """What came of the call, once it is complete."""
        if self._error is not None:
            raise self._error
        return self._outcome


_flights: set[Flight] = set()
_abandoned: set[Flight] = set()


def _sweep() -> None:
    """Let go of calls that are complete and that nobody will ask for."""
    for flight in list(_abandoned):
        if flight.test():
            _abandoned.discard(flight)


def drain() -> None:
    """Wait for all calls in flight."""
    while _flights:
        for flight in list(_flights):
            flight.test()


_mpi.before_end(drain)


class Handle:
    """A call in flight.

    Its buffers belong to the library until it is complete: do not write to any of them, nor read `out`. They
    stay alive even if the handle is dropped. MPI moves calls only while somebody waits or asks, unless the
    hint progress=thread is set; whoever does so moves all calls in flight.
    """

    def __init__(self, flight: Flight) -> None:
        self._flight = flight

    def done(self) -> bool:
        """Whether the call is complete. Not collective; never waits."""
        return self._flight.test()

    def wait(self) -> Any:
        """Wait for the call and return its outcome: what the blocking call returns. May be called again.

        Every rank must wait, or keep asking, in the end; handles may be waited for in any order. An interrupt
        (KeyboardInterrupt) leaves the call in flight and the handle usable.

        Raises:
            Error: the call failed, on every rank.
        """
        self._flight.land()
        return self._flight.outcome()

    def __del__(self) -> None:
        flight = getattr(self, "_flight", None)
        if flight is not None and not flight.complete:
            _abandoned.add(flight)
            warnings.warn("a handle was dropped before its call was complete", ResourceWarning, stacklevel=2)


def wait_all(handles: Sequence[Handle]) -> list[Any]:
    """Wait for several handles and return their outcomes, in the same order.

    Raises:
        Error: the first of their errors, when all are complete.
    """
    for handle in handles:
        handle._flight.land()
    return [handle.wait() for handle in handles]
