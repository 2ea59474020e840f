# SPDX-License-Identifier: BSD-3-Clause
"""The ranks that train together, on duplicated communicators, so that calls do not match calls of the
program."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import torch

from .. import Report, _pending, _hints, _inquiry, _mpi, _types
from .._library import library


class World:
    """Communicators of some ranks: one for each meaning of 16-bit elements, with hints for the calls on them.
    Creation is collective, while no call is in flight."""

    def __init__(self, comm: Any, **hints: Any) -> None:
        handle = _mpi.communicator(comm)
        self.plain = _duplicate(handle, {"element": "integer", **hints})
        halves = "float16", "bfloat16"
        self.of_type = {name: _duplicate(handle, {**_types.hints(name), **hints}) for name in halves}
        self.rank, self.size = _mpi.rank(handle), _mpi.size(handle)
        self.local_rank, self.local_size = _local(handle)
        self.parts: dict[tuple[int, ...], World] = {}  # by subset of these ranks

    def comm(self, name: str) -> Any:
        """The communicator for elements of a type."""
        return self.of_type.get(name, self.plain)

    def free(self) -> None:
        """Free the communicators. Collective."""
        for comm in [self.plain, *self.of_type.values()]:
            _mpi.check(library.MPI_Comm_free(ctypes.byref(comm)))


def _duplicate(comm: Any, hints: dict[str, str]) -> Any:
    made = _mpi.Handle()
    _mpi.check(library.MPI_Comm_dup(comm, ctypes.byref(made)))
    _hints.set_info(made, **hints)
    return made


def _local(comm: Any) -> tuple[int, int]:
    """Rank and number of ranks on this node."""
    node, none = _mpi.Handle(), _mpi.constant("INFO_NULL")
    kind = ctypes.c_int(_mpi.COMM_TYPE_SHARED)
    _mpi.check(library.MPI_Comm_split_type(comm, kind, ctypes.c_int(0), none, ctypes.byref(node)))
    found = _mpi.rank(node), _mpi.size(node)
    _mpi.check(library.MPI_Comm_free(ctypes.byref(node)))
    return found


def _subset(ranks: Sequence[int]) -> Any:
    """A communicator of some ranks. Collective over them."""
    everyone, some, comm = _mpi.Handle(), _mpi.Handle(), _mpi.Handle()
    numbers = (ctypes.c_int * len(ranks))(*ranks)
    _mpi.check(library.MPI_Comm_group(world().plain, ctypes.byref(everyone)))
    _mpi.check(library.MPI_Group_incl(everyone, ctypes.c_int(len(ranks)), numbers, ctypes.byref(some)))
    _mpi.check(library.MPI_Comm_create_group(world().plain, some, ctypes.c_int(0), ctypes.byref(comm)))
    # MPICH sets a handler that aborts, not the parent's.
    _mpi.check(library.MPI_Comm_set_errhandler(comm, _mpi.constant("ERRORS_RETURN")))
    for group in (everyone, some):
        _mpi.check(library.MPI_Group_free(ctypes.byref(group)))
    return comm


_groups: list[World] = []


def group_of(ranks: Sequence[int], **hints: Any) -> World:
    """A World of some of the ranks, by their numbers in world(). It lives until MPI ends. Collective over
    them."""
    comm = _subset(ranks)
    made = World(comm, **hints)
    _mpi.check(library.MPI_Comm_free(ctypes.byref(comm)))
    _groups.append(made)
    return made


def _free_groups() -> None:
    _pending.wait_for_all()
    while _groups:
        _groups.pop().free()


_world: World | None = None


def world() -> World:
    """The ranks that train together.

    Raises:
        ValueError: init() has not been called.
    """
    if _world is None:
        raise ValueError("mpix_sparse.torch has not been initialized; call init() first")
    return _world


class _AllRanks:
    """Horovod's global process set, the only one here."""

    @property
    def ranks(self) -> list[int]:
        """The ranks' numbers."""
        return list(range(size()))

    def size(self) -> int:
        """The number of ranks."""
        return size()

    def rank(self) -> int:
        """The rank of this process."""
        return rank()

    def included(self) -> bool:
        """True: this process is always included."""
        return True


global_process_set = _AllRanks()


def refuse_process_set(process_set: Any) -> None:
    """Raise ValueError for anything but all ranks."""
    if process_set is not None and process_set is not global_process_set:
        raise ValueError(
            "there are no process sets but that of all ranks; process_set must be None or global_process_set"
        )


def init(comm: Any = None) -> None:
    """Initialise on the ranks of a communicator. Collective over comm; a second call does nothing.

    Args:
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.

    Raises:
        Error, ImportError, TypeError: see mpix_sparse.init().
    """
    global _world
    if _world is None:
        _world = World(comm)


def shutdown() -> None:
    """Wait for calls in flight and free the communicators. Collective. MPI is finalized when the program
    ends."""
    global _world
    if _world is not None and _mpi.is_initialized():
        _pending.wait_for_all()
        _world.free()
    _world = None


_mpi.add_finalize_hook(shutdown)
_mpi.add_finalize_hook(_free_groups)  # called first


def is_initialized() -> bool:
    """True after init() and before shutdown()."""
    return _world is not None


def rank() -> int:
    """The rank of this process."""
    return world().rank


def size() -> int:
    """The number of ranks."""
    return world().size


def local_rank() -> int:
    """The rank of this process on its node; commonly the number of its GPU."""
    return world().local_rank


def local_size() -> int:
    """The number of ranks on this node."""
    return world().local_size


def report(dtype: torch.dtype = torch.float32) -> Report:
    """Report on the last call that has completed for gradients of a type. Local.

    Raises:
        Error: no call has completed.
    """
    return _inquiry.report(world().comm(str(dtype).replace("torch.", "")))
