# SPDX-License-Identifier: BSD-3-Clause
"""Futures of PyTorch for calls in flight. Whoever waits for a future sleeps inside PyTorch, where nothing
moves a call, so a thread does. It exists once a future has been asked for."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Callable

import torch

from .. import _mpi

SPINS = 50  # of a call, after which the thread leaves the core to others for a while
NAP = 20e-6  # seconds

_waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
_thread: threading.Thread | None = None


def future_of(work: Any, outcome: Callable[[], Any]) -> Any:
    """A future of a call: completed when the call is, with what a function returns, or raises, then.

    Args:
        work: has done(), which moves calls.
        outcome: called once, by any thread.
    """
    ended: Any = torch.futures.Future()
    # What a callback raises is an error to C++ too; a result that is an exception is not.
    future = ended.then(lambda _: outcome())
    if _mpi.allows_threads():
        _hand_over(work, ended)
    else:
        _land(work)
        ended.set_result(None)
    return future


def _hand_over(work: Any, ended: Any) -> None:
    global _thread
    _waiting.put((work, ended))
    if _thread is None:
        _thread = threading.Thread(target=_move, name="mpix_sparse", daemon=True)
        _thread.start()


def _move() -> None:
    """Complete calls in the order of their starts, which is that in which they end on a communicator."""
    while True:
        work, ended = _waiting.get()
        _land(work)
        ended.set_result(None)


def _land(work: Any) -> None:
    tries = 0
    while not work.done():
        tries += 1
        time.sleep(0 if tries < SPINS else NAP)
