# SPDX-License-Identifier: BSD-3-Clause
"""Communicators for calls inside XLA, which may run when the program already makes other calls."""

from __future__ import annotations

import threading
from typing import Any

from .. import Error, Report, _hints, _inquiry, _mpi, _types
from .._duplicates import Duplicates
from ._order import wait_for_calls

NEED_THREADS = (
    "MPI was initialised without MPI_THREAD_MULTIPLE, and XLA makes calls from threads of its own; let "
    "mpix_sparse.init() initialise MPI, or ask mpi4py for thread_level 'multiple'"
)


class World(Duplicates):
    """Duplicates of a communicator. Creation is collective.

    Attributes:
        source: what the user has passed: None, or a communicator of mpi4py.
        number: the world's place in the list of all worlds.
        lock: held during a call; MPI allows one collective call at a time on a communicator.
    """

    def __init__(self, source: Any, number: int) -> None:
        self.source, self.number = source, number
        self.handle = _mpi.communicator(source)
        super().__init__(self.handle)
        self.lock = threading.Lock()

    def is_of(self, source: Any, handle: Any) -> bool:
        """True if this is the world of a communicator. A communicator that was freed may leave its handle to
        a new one; then mpi4py's object no longer has the handle."""
        if source is None or self.source is None:
            return source is self.source
        return self.handle.value == handle.value == _mpi.communicator(self.source).value


_worlds: list[World] = []


def world_of(comm: Any) -> World:
    """The world of a communicator. Collective over comm when it is first used.

    Raises:
        Error: MPI was initialised without MPI_THREAD_MULTIPLE.
        TypeError: comm is not a communicator.
    """
    found = _find(comm)
    if found is not None:
        return found
    if not _mpi.allows_threads():
        raise Error(NEED_THREADS)
    _worlds.append(World(comm, len(_worlds)))
    return _worlds[-1]


def _find(comm: Any) -> World | None:
    """The world of a communicator, if it has been used."""
    handle = _mpi.communicator(comm)
    for world in _worlds:
        if world.is_of(comm, handle):
            return world
    return None


def world_number(number: int) -> World:
    """The world with a number, for a call that was compiled for it.

    Raises:
        Error: there is no such world in this process, since MPI has been finalized.
    """
    if number >= len(_worlds):
        raise Error("this call was compiled for a communicator that this process does not have")
    return _worlds[number]


def barrier(comm: Any = None) -> None:
    """Wait for all ranks, after the calls that this thread has started are complete. Collective over comm.

    Not for functions that jax traces, where it would run once, during tracing. Errors of earlier calls are
    forgotten: see "Errors" in the package's description.

    Raises:
        Error: another rank makes another call of this package.
    """
    world = world_of(comm)
    wait_for_calls()
    with world.lock:
        _inquiry.barrier(world.plain)


def set_info(comm: Any = None, **hints: Any) -> None:
    """Set hints for later calls of this package on a communicator. Collective; waits for calls in flight.

    Args:
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        hints: as for mpix_sparse.set_info(), but for `element`, which this package sets.

    Raises:
        ValueError: `element` is among the hints. Only on this rank.
        Error: a value is wrong, or differs between ranks.
    """
    if "element" in hints:
        raise ValueError("the hint element follows from the type of arrays; it cannot be set")
    world = world_of(comm)
    wait_for_calls()
    for handle in world.all():
        _hints.set_info(handle, **hints)


def report(dtype: Any = "float32", comm: Any = None) -> Report:
    """Report on the last call of this package that has completed on a communicator. Not collective.

    Args:
        dtype: float16 and bfloat16 have calls of their own; all other types are reported together.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.

    Raises:
        Error: no call has completed.
    """
    world = _find(comm)
    if world is None:
        raise Error("no call has completed on comm")
    wait_for_calls()
    return _inquiry.report(world.comm(_types.name_of(dtype)))


def free_worlds() -> None:
    """Free all communicators. Collective."""
    while _worlds:
        _worlds.pop().free()
