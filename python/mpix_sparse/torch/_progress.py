# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch futures for calls in flight. A wait for a future blocks inside PyTorch, which makes no progress
on calls, so a thread does. The first future starts the thread. It runs no code of the program: callbacks run
in other threads."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Callable

import torch

from .. import _mpi
from . import _callbacks, _deferred
from ._callbacks import changed

SPINS = 50  # tests of calls before the thread sleeps between tests
SLEEP_SECONDS = 20e-6
WATCH_SECONDS = 1e-3  # between looks at callbacks and deferred calls, while no call has a future


@dataclass
class _Pending:
    """A call in flight that has a future.

    Attributes:
        finish: completes the future; called in the thread of callbacks.
    """

    work: Any
    registration: _callbacks.Registration
    finish: Callable[[], None]


_pending: list[_Pending] = []  # in the order of their starts; under `changed`
_thread: threading.Thread | None = None
_closing = False


def future_of(work: Any, result: Callable[[], Any]) -> Any:
    """A future that completes with the call. Without MPI_THREAD_MULTIPLE it waits for the call first.

    Args:
        work: the call; its done() makes progress. Of calls that have an element of work.orders in common,
            the futures complete in the order in which they were made.
        result: returns the future's value, or raises its exception. Called once, in any thread.
    """
    finished: Any = torch.futures.Future()
    # An exception that a callback raises is an error in C++ too; an exception set as the result is not.
    future = finished.then(lambda _: result())
    if _mpi.allows_threads():
        _callbacks.run_callbacks_of(future, work.orders)
        registration = _callbacks.Registration(work.orders, is_collective=bool(work.orders))
        _submit(_Pending(work, registration, lambda: finished.set_result(None)))
    else:
        _wait(work)
        finished.set_result(None)
    return future


def watch() -> None:
    """Start deferred calls, also while the program makes no calls, if MPI allows threads."""
    if _deferred.waiting and _mpi.allows_threads():
        _submit()


def _submit(*pending: _Pending) -> None:
    global _thread
    with changed:
        _pending.extend(pending)
        changed.notify_all()
        if _thread is None:
            _thread = threading.Thread(target=_progress_loop, name="mpix_sparse", daemon=True)
            _thread.start()
            _mpi.add_finalize_hook(_stop)


def _is_needed() -> bool:
    return bool(_pending or _callbacks.are_unfinished() or _deferred.waiting)


def _progress_loop() -> None:
    tries = 0
    while True:
        with changed:
            changed.wait_for(lambda: _closing or _is_needed())
            if _closing:
                return
            waiting = list(_pending)
        _deferred.advance()
        complete = _find_complete(waiting)
        for pending in complete:
            pending.registration.submit(pending.finish)
        with changed:
            for pending in complete:
                _pending.remove(pending)
        _callbacks.add_threads()
        tries = 0 if complete else tries + 1
        _pause(tries, bool(waiting))


def _pause(tries: int, in_flight: bool) -> None:
    if in_flight:
        time.sleep(0 if tries < SPINS else SLEEP_SECONDS)
    else:
        with changed:
            changed.wait(WATCH_SECONDS)


def _find_complete(waiting: list[_Pending]) -> list[_Pending]:
    """The calls that are complete, except those behind others of the same group. Only so does the order of
    callbacks, which may start calls, not depend on the time."""
    incomplete: set[Any] = set()
    found = []
    for pending in waiting:
        orders = pending.work.orders
        if incomplete.isdisjoint(orders) and pending.work.done():
            found.append(pending)
        else:
            incomplete |= orders
    return found


def _wait(work: Any) -> None:
    tries = 0
    while not work.done():
        tries += 1
        time.sleep(0 if tries < SPINS else SLEEP_SECONDS)


def _stop() -> None:
    """Wait for calls that have futures and for callbacks, and end the threads."""
    global _thread, _closing
    _callbacks.stop(_pending)
    with changed:
        _closing = True
        changed.notify_all()
    if _thread is not None:
        _thread.join()
    _thread, _closing = None, False
