# SPDX-License-Identifier: BSD-3-Clause
"""Runs callbacks of futures in threads that make no progress on calls, since a callback may wait for a call.

Callbacks may start calls, which all ranks must start in the same order. So callbacks of a process group run
one after another. Of those whose futures are complete, the one that the program registered first runs first.
Each depth has one thread: depth 1 runs callbacks that the program's threads register, depth 2 those that
callbacks of depth 1 register, and so on. Calls of each depth have communicators of their own
(World.at_depth), since calls that several threads start have no order.

While a callback waits, another thread runs those of other groups, and those that it waits for."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
import warnings
import weakref
from typing import Any, Callable

import torch


IDLE_SECONDS = 0.5  # a thread that uses no processor time for so long is taken to wait
END_SECONDS = 5  # for callbacks that wait when the program ends

_lock = threading.Lock()  # protects all state of this module and of _progress.py
changed = threading.Condition(_lock)
_here = threading.local()
_closing = False


Orders = frozenset[Any]  # of a callback: it runs after earlier ones that have one of these in common


class _Worker:
    """A thread that runs callbacks."""

    def __init__(self) -> None:
        self.busy = False
        self.orders: Orders = frozenset()  # of its callback
        self.awaited: Any = None  # a future
        self._processor_seconds, self._since = -1.0, 0.0
        self.thread: Any = None

    def is_blocked(self) -> bool:
        """True if the thread waits for a future, or has used no processor time for a while."""
        awaited = self.awaited
        if awaited is not None:
            return not awaited.done()
        used, now = self._used(), time.monotonic()
        if used != self._processor_seconds:
            self._processor_seconds, self._since = used, now
        return now - self._since > IDLE_SECONDS

    def _used(self) -> float:
        if not hasattr(time, "pthread_getcpuclockid"):
            return time.monotonic()
        return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident))


class _Runner:
    """Runs the callbacks of one depth.

    Attributes:
        unfinished: callbacks that are registered and have not run to their end.
        collectives: collective calls in flight whose completion is one of them.
    """

    def __init__(self, depth: int) -> None:
        self.depth, self.unfinished, self.collectives = depth, 0, 0
        self.numbers = itertools.count()
        self.wake = threading.Condition(_lock)  # not `changed`, which would wake all threads
        self.ready: list[tuple[int, Orders, Callable[[], None]]] = []  # by number
        self.workers: list[_Worker] = []  # the last one takes callbacks; the others are blocked in one
        self.add_thread()

    def add_thread(self) -> None:
        """Start a thread that takes callbacks; those before it end after the one that they run."""
        worker = _Worker()
        name = f"mpix_sparse callbacks {self.depth}"
        worker.thread = threading.Thread(target=self._run, args=(worker,), name=name, daemon=True)
        worker.thread.start()
        self.workers.append(worker)

    def _run(self, worker: _Worker) -> None:
        _here.depth, _here.worker = self.depth, worker
        while True:
            with _lock:
                self.wake.wait_for(lambda: self.next() is not None or _closing)
                found = self.next()
                if found is None:
                    return
                _, worker.orders, function = self.ready.pop(found)
                worker.busy = True
            function()
            function = None  # what it refers to may be deleted
            with changed:
                self.unfinished -= 1
                worker.busy = False
                changed.notify_all()
                if worker is not self.workers[-1]:
                    self.workers.remove(worker)
                    return

    def next(self) -> int | None:
        """The index of the callback to run, which no running one precedes."""
        running = [worker.orders for worker in self.workers if worker.busy]
        for i, (_, orders, _) in enumerate(self.ready):
            if all(map(orders.isdisjoint, running)):
                return i
        return None

    def add_thread_if_blocked(self) -> None:
        """Add a thread if callbacks are ready behind one that waits: those of other groups, or all if it does
        not wait for a deeper one."""
        if not self.ready or not self.is_blocked():
            return
        if not any(map(_Runner.is_active, _runners[self.depth :])):
            for worker in self.workers:
                worker.orders = frozenset()
        if self.next() is not None:
            self.add_thread()

    def is_blocked(self) -> bool:
        """True if the callback that runs waits."""
        return self.workers[-1].busy and self.workers[-1].is_blocked()

    def is_active(self) -> bool:
        """True if a callback of this depth runs, or will without one of a smaller depth."""
        runs = self.workers[-1].busy or self.ready
        return self.collectives > 0 or bool(runs and not self.is_blocked())


_runners: list[_Runner] = []  # by depth, from 1 on


def depth() -> int:
    """The depth of the callback that this thread runs; 0 outside callbacks."""
    return getattr(_here, "depth", 0)


class Registration:
    """The registration of a callback, which gives it its position in the order of callbacks.

    Args:
        orders: see Orders.
        is_collective: the callback waits for a collective call in flight.
    """

    def __init__(self, orders: Orders, is_collective: bool = False) -> None:
        with changed:
            if depth() == len(_runners):
                _runners.append(_Runner(depth() + 1))
            self._runner = _runners[depth()]
            self._number = next(self._runner.numbers)
            self._runner.unfinished += 1
            self._orders, self._is_collective = orders, is_collective
            self._runner.collectives += is_collective
            changed.notify_all()

    def submit(self, function: Callable[[], None]) -> None:
        """Run the callback, which must not raise, when its turn has come."""
        with changed:
            self._runner.collectives -= self._is_collective
            bisect.insort(self._runner.ready, (self._number, self._orders, function))
            self._runner.wake.notify()


def are_unfinished() -> bool:
    """True if callbacks are registered that have not run to their end. The caller holds `changed`."""
    return any(runner.unfinished for runner in _runners)


def add_threads() -> None:
    """Add threads where callbacks wait for callbacks behind them."""
    with changed:
        for runner in reversed(_runners):
            runner.add_thread_if_blocked()


_plain_then, _plain_wait = torch._C.Future.then, torch._C.Future.wait
_plain_add_done_callback = torch._C.Future.add_done_callback
_ours: weakref.WeakKeyDictionary[Any, Orders] = weakref.WeakKeyDictionary()  # by future


def _add_in_turn(add: Callable[..., Any], future: Any, orders: Orders, callback: Callable[[Any], Any]) -> Any:
    """Add a callback that runs when its turn has come, by a plain method. PyTorch runs a callback at once, in
    the thread of the caller, if its future is complete. That would give it another position in the order on
    other ranks."""
    registration, turn = Registration(orders), torch.futures.Future()
    made = add(turn, lambda _: callback(future))
    _plain_add_done_callback(future, lambda _: registration.submit(lambda: turn.set_result(None)))
    return made


def _then(future: Any, callback: Callable[[Any], Any]) -> Any:
    """Future.then()."""
    orders = _ours.get(future)
    if orders is None:
        return _plain_then(future, callback)
    made = _add_in_turn(_plain_then, future, orders, callback)
    _ours[made] = orders
    return made


def _add_done_callback(future: Any, callback: Callable[[Any], None]) -> None:
    """Future.add_done_callback()."""
    orders = _ours.get(future)
    if orders is None:
        _plain_add_done_callback(future, callback)
    else:
        _add_in_turn(_plain_add_done_callback, future, orders, callback)


def _wait_for_call(future: Any) -> Any:
    """Future.wait() of a thread of the program, for a future of this module."""
    return _plain_wait(future)


def wait_for_future(future: Any) -> Any:
    """Future.wait(), which notes what a thread waits for."""
    worker = getattr(_here, "worker", None)
    if worker is None:
        return _wait_for_call(future) if future in _ours else _plain_wait(future)
    worker.awaited = future
    try:
        return _plain_wait(future)
    finally:
        worker.awaited = None


def run_callbacks_of(future: Any, orders: Orders) -> None:
    """Run the callbacks that the program adds to a future in the threads of this module. torch._C.Future has
    no subclasses with a C++ error, so its methods then(), add_done_callback() and wait() are replaced; other
    futures behave as before."""
    torch._C.Future.then, torch._C.Future.wait = _then, wait_for_future
    torch._C.Future.add_done_callback = _add_done_callback
    _ours[future] = orders


def stop(calls: Any) -> None:
    """Wait for all callbacks and end the threads. A callback that waits for END_SECONDS while `calls`, those
    in flight, is empty is left behind, with a warning."""
    global _closing
    with changed:
        deadline = time.monotonic() + END_SECONDS
        while are_unfinished() and time.monotonic() < deadline:
            before = sum(runner.unfinished for runner in _runners)
            changed.wait(0.1)
            if calls or sum(runner.unfinished for runner in _runners) != before or not _all_blocked():
                deadline = time.monotonic() + END_SECONDS
        left = sum(runner.unfinished for runner in _runners)
        _closing = True
        for runner in _runners:
            runner.wake.notify_all()
        threads = [worker.thread for runner in _runners for worker in runner.workers if not worker.busy]
    for thread in threads:
        thread.join()
    with changed:
        _runners.clear()
        _closing = False
    if left:
        warnings.warn(f"{left} callbacks of futures have not ended", RuntimeWarning, stacklevel=2)


def _all_blocked() -> bool:
    workers = [worker for runner in _runners for worker in runner.workers if worker.busy]
    return bool(workers) and all([worker.is_blocked() for worker in workers])
