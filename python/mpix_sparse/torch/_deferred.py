# SPDX-License-Identifier: BSD-3-Clause
"""Calls that start when another call has compared their arguments. On ranks whose arguments differ they never
start, so the others do not wait for them."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable

from .. import _mpi
from .._pending import SPINS

_lock = threading.Lock()
waiting: list[DeferredCall] = []  # calls that have not started; under the lock


class DeferredCall:
    """The handle of a call that starts when its arguments have been compared.

    Args:
        comm: the communicator on which arguments are compared. Calls that have it in common start in the
            order in which they were made.
        comparison: the handle of the comparison; its wait() raises the error if arguments differ.
        start: starts the call and returns its handle.
    """

    def __init__(self, comm: Any, comparison: Any, start: Callable[[], Any]) -> None:
        self._comm, self._comparison, self._start = comm.value, comparison, start
        self._handle: Any = None
        self._error: Exception | None = None
        with _lock:
            waiting.append(self)
        advance()

    def _begin(self) -> None:
        try:
            self._comparison.wait()
            self._handle = self._start()
        except Exception as error:  # raised by wait(), since this may be a thread of the package
            self._error = error

    def done(self) -> bool:
        """True if the call is complete. Makes progress on all calls in flight."""
        advance()
        return self._error is not None or (self._handle is not None and self._handle.done())

    def wait(self) -> Any:
        """Wait for the call and return its result.

        Raises:
            Error, ValueError: arguments differ between ranks, or the call failed; on every rank.
        """
        tests = 0
        while not self.done():
            tests += 1
            os.sched_yield() if tests < SPINS else time.sleep(0)
        if self._error is not None:
            raise self._error
        return self._handle.wait()

    def advance_first(self, blocked: set[Any]) -> bool:
        """Start the call if its arguments have been compared, and no earlier one with its communicator
        waits."""
        if self._comm in blocked or not self._comparison.done():
            blocked.add(self._comm)
            return False
        self._begin()
        return True


def advance() -> None:
    """Start the calls whose arguments have been compared, in the order in which the program made them."""
    if not waiting or not _lock.acquire(blocking=False):
        return
    try:
        blocked: set[Any] = set()
        waiting[:] = [call for call in waiting if not call.advance_first(blocked)]
    finally:
        _lock.release()


def _finish() -> None:
    while waiting:
        advance()
        time.sleep(0)


_mpi.add_finalize_hook(_finish)
