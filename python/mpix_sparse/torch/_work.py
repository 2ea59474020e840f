# SPDX-License-Identifier: BSD-3-Clause
"""Calls in flight as objects, for synchronize() and poll()."""

from __future__ import annotations

import threading
from typing import Any, Callable, Sequence


class Work:
    """A call in flight, for synchronize() or poll().

    Attributes:
        orders: the groups of ranks, by a communicator of each, whose futures complete in the order of the
            calls; empty for a message between two ranks.
    """

    def __init__(self, handle: Any, finish: Callable[[Any], Any], comm: Any = None) -> None:
        self._handle, self._finish = handle, finish
        self.orders = getattr(handle, "orders", frozenset()) if comm is None else frozenset({comm.value})
        self._result: Any = None
        self._lock = threading.Lock()

    def done(self) -> bool:
        """True if the call is complete."""
        return self._finish is None or self._handle.done()

    def wait(self) -> Any:
        """Wait for the call; returns its tensor, also when called again."""
        with self._lock:
            if self._finish is not None:
                self._result = self._finish(self._handle.wait())
                self._finish = None
        return self._result

    __call__ = wait  # what Horovod's sparse_allreduce_async() returns is called


class WorkGroup:
    """Several calls as one."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works
        self.orders = frozenset(order for work in works for order in work.orders)

    def done(self) -> bool:
        """True if all calls are complete."""
        return all([work.done() for work in self._works])

    def wait(self) -> list[Any]:
        """Wait for all calls; returns their tensors."""
        return [work.wait() for work in self._works]


def finished_work(result: Any) -> Work:
    """The Work of a call that is complete."""
    return Work(WorkGroup([]), lambda _: result)


def synchronize(handle: Work) -> Any:
    """Wait for a call and return its tensor. Every rank must do this for each of its calls.

    Raises:
        TypeError: the argument is not a Work.
        Error: the call failed, on every rank.
    """
    return _started(handle).wait()


def poll(handle: Work) -> bool:
    """True if a call is complete, so that synchronize() would not wait. Makes progress on all calls in
    flight."""
    return _started(handle).done()


def _started(handle: Any) -> Work:
    if not isinstance(handle, Work):
        raise TypeError(f"what a call ending in _async returned is needed, not {type(handle).__name__}")
    return handle
