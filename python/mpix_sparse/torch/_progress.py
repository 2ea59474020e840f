# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch futures for calls in flight. A wait for a future blocks inside PyTorch, which makes no progress
on calls, so a thread does. The first future starts the thread."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Callable

import torch

from .. import _mpi

SPINS = 50  # tests of a call before the thread sleeps between tests
SLEEP_SECONDS = 20e-6

_waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
_thread: threading.Thread | None = None


def future_of(work: Any, result: Callable[[], Any]) -> Any:
    """A future that completes with the call. Without MPI_THREAD_MULTIPLE it waits for the call first.

    Args:
        work: the call; its done() makes progress.
        result: returns the future's value, or raises its exception. Called once, in any thread.
    """
    finished: Any = torch.futures.Future()
    # An exception that a callback raises is an error in C++ too; an exception set as the result is not.
    future = finished.then(lambda _: result())
    if _mpi.allows_threads():
        _submit(work, finished)
    else:
        _wait(work)
        finished.set_result(None)
    return future


def _submit(work: Any, finished: Any) -> None:
    global _thread
    _waiting.put((work, finished))
    if _thread is None:
        _thread = threading.Thread(target=_progress_loop, name="mpix_sparse", daemon=True)
        _thread.start()


def _progress_loop() -> None:
    """Complete calls in the order of their starts, which is the order in which a communicator completes
    them."""
    while True:
        work, finished = _waiting.get()
        _wait(work)
        finished.set_result(None)


def _wait(work: Any) -> None:
    tries = 0
    while not work.done():
        tries += 1
        time.sleep(0 if tries < SPINS else SLEEP_SECONDS)
