# SPDX-License-Identifier: BSD-3-Clause
"""Training that goes on after an error, with Horovod's interface: states that are committed and restored in
memory, and run(), which restores the last commit and calls the training function again.

The ranks stay the same: MPI cannot replace a rank that has ended, nor add one. So run() goes on only after an
error that all ranks got, with all ranks alive. Otherwise it raises Error, and the program ends."""

from __future__ import annotations

import ctypes
import functools
import time
from typing import Any, Callable

from ... import _frames, _mpi, _pending
from ..._error import Error
from ..._library import library
from ..._pending import PendingCall
from .._world import World, subset_of, world
from .sampler import ElasticSampler
from .state import ObjectState, State, TorchState

__all__ = [
    "ElasticSampler",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "ObjectState",
    "State",
    "TorchState",
    "run",
]

TIMEOUT_SECONDS = 60.0  # that run() waits for the other ranks after an error
MAX_RETRIES = 3  # without a commit in between
RESTORE, RESET = 1, 2  # what a rank does after an exception

HorovodInternalError = Error


class HostsUpdatedInterrupt(RuntimeError):
    """The set of hosts has changed. This package never raises it; if all ranks raise it, run() calls the
    function again without a restore.

    Args:
        skip_sync: True if states need not be copied from rank 0.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the set of hosts has changed")
        self.skip_sync = skip_sync


def _give_up(reason: str) -> Error:
    return Error(
        f"elastic.run cannot go on: {reason}. It restores only after an error that all ranks got, and MPI "
        "cannot replace a rank that has ended"
    )


def _wait(done: Callable[[], bool], what: str) -> None:
    """Wait until done() is true.

    Raises:
        Error: it is not true in time.
    """
    end = time.monotonic() + TIMEOUT_SECONDS
    with _frames.bounded_wait():
        while not done():
            if time.monotonic() > end:
                raise _give_up(f"{what} within {TIMEOUT_SECONDS:g} seconds")
            time.sleep(0)


def _agree(action: int, ranks: World) -> None:
    """Check that all ranks do the same after an exception. Collective over communicators that the training
    function does not use, so that it cannot match a call that a rank is still in.

    Raises:
        Error: a rank does something else, or nothing in time.
    """
    extremes = (ctypes.c_longlong * 2)(action, -action)
    pending = PendingCall(extremes, lambda: None)
    how = ctypes.c_int(2), _mpi.constant("INT64_T"), _mpi.constant("MAX"), ranks.plain
    handle = pending.begin(
        library.MPI_Iallreduce(_mpi.IN_PLACE, extremes, *how, ctypes.byref(pending.request))
    )
    _wait(handle.done, "another rank did not get here")
    handle.wait()
    if extremes[0] != -extremes[1]:
        raise _give_up("ranks got different exceptions")


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a training function, whose first argument is a State, so that it goes on after errors.

    The function starts with rank 0's state on all ranks. If it raises Error (HorovodInternalError) on all
    ranks, the state returns to the last commit(), and the function is called again, up to 3 times without a
    commit in between. HostsUpdatedInterrupt on all ranks calls it again without the restore. Other exceptions
    are not caught: they end the program on all ranks.

    Collective over all ranks; the function makes the calls of the training.

    Raises:
        Error: another rank did not get the error within 60 seconds (elastic.TIMEOUT_SECONDS), as if it has
            ended; or the error came again.
    """

    @functools.wraps(func)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> Any:
        ranks = subset_of(range(world().size))
        retries, commits, synced = 0, -1, False
        while True:
            try:
                if not synced:
                    state.sync()
                result = func(state, *args, **kwargs)
                ranks.free()
                return result
            except HostsUpdatedInterrupt as interrupt:
                _agree(RESET, ranks)
                synced = interrupt.skip_sync
            except Error:
                retries = retries + 1 if commits == state._commits else 1
                commits, synced = state._commits, False
                if retries > MAX_RETRIES:
                    raise
                _agree(RESTORE, ranks)
                _wait(lambda: not _pending.in_flight(), "calls in flight did not end")
                state.restore()
            state.on_reset()

    return wrapper
