# SPDX-License-Identifier: BSD-3-Clause
"""The ranks that train together, on duplicated communicators, so that calls do not match calls of the
program."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Sequence

import torch

from .. import Error, Report, _counts, _pending, _hints, _inquiry, _mpi
from .._duplicates import Duplicates, duplicate
from .._library import library


class _Total:
    """The number of calls that have started. A new value of a class' attribute would take half a microsecond:
    Python then forgets where it found attributes of the objects."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


total = _Total()  # of all Worlds

# Hints of an optimizer's plans: their starts make no check once the scheme is settled. The check of a step
# tells optimizers apart, and the plans of a step start in one order.
UNCHECKED = {"check_starts": "off"}


class World(Duplicates):
    """Communicators of some ranks. Creation is collective, while no call is in flight.

    Args:
        forward: the hint `forward`; None for that of comm.
        label: see duplicate().

    Attributes:
        compared: for calls that start when their arguments have been compared (_agree.py), all of them in
            the order of the program.
        checks: True if ranks compare the arguments of all calls.
        may_block: True if no calls are passed to MPI, whose blocking functions do not match nonblocking ones.
        numbers: of these ranks, in world(); for errors.
        calls: number of calls whose arguments have been compared, the same on all ranks.
        last: the communicator of the last reduction that has started.
        lock: held while an allreduce of a thread starts or blocks. A handler of a signal may start another.
    """

    def __init__(self, comm: Any, forward: str | None = None, label: str = "") -> None:
        handle = _mpi.communicator(comm)
        if forward is None:
            _hints.check_arguments(handle)
            forward = _hints.forward(handle)
        super().__init__(handle, label, forward=forward)
        self.forward, self.checks = forward, forward == "0" and self.size > 1
        self.may_block = forward == "0"
        self.compared, self.calls, self.last = duplicate(handle, label), 0, self.plain
        self.numbers: Sequence[int] = range(self.size)
        self.lock = threading.RLock()
        self.local_rank, self.local_size = _local(handle)
        self.cross_rank, self.cross_size = _across(handle, self.local_rank)
        self.is_homogeneous = _are_equal(self.local_size, handle)
        self.parts: dict[tuple[int, ...], World] = {}  # by subset of these ranks
        self._deeper: dict[int, World] = {}  # by depth

    def all(self) -> list[Any]:
        """All duplicates."""
        return [*super().all(), self.compared]

    def at_depth(self, depth: int) -> World:
        """The same ranks, on the communicators for calls that callbacks of this depth start (_callbacks.py);
        depth 0 is this object. The first call for a depth is collective."""
        if depth == 0:
            return self
        if depth not in self._deeper:
            # The tag keeps threads apart that create communicators at the same time.
            comm = _create(self.plain, range(self.size), tag=depth)
            self._deeper[depth] = World(comm, self.forward, f"depth {depth}")
            self._deeper[depth].numbers = self.numbers
            _mpi.check(library.MPI_Comm_free(ctypes.byref(comm)))
        return self._deeper[depth]

    def free(self) -> None:
        """Free the communicators. Collective."""
        for _, deeper in sorted(self._deeper.items()):
            deeper.free()
        super().free()


def _local(comm: Any) -> tuple[int, int]:
    """Rank and number of ranks on this node."""
    node, none = _mpi.Handle(), _mpi.constant("INFO_NULL")
    kind = ctypes.c_int(_mpi.COMM_TYPE_SHARED)
    _mpi.check(library.MPI_Comm_split_type(comm, kind, ctypes.c_int(0), none, ctypes.byref(node)))
    return _rank_and_size(node)


def _across(comm: Any, local_rank: int) -> tuple[int, int]:
    """The number of this node, and the number of nodes, among nodes that have this local rank."""
    others = _mpi.Handle()
    color, key = ctypes.c_int(local_rank), ctypes.c_int(0)
    _mpi.check(library.MPI_Comm_split(comm, color, key, ctypes.byref(others)))
    return _rank_and_size(others)


def _are_equal(number: int, comm: Any) -> bool:
    """True if a number is equal on all ranks."""
    extremes = (ctypes.c_int * 2)(number, -number)
    how = ctypes.c_int(2), _mpi.constant("INT32_T"), _mpi.constant("MAX"), comm
    _mpi.check(library.MPI_Allreduce(_mpi.IN_PLACE, extremes, *how))
    return extremes[0] == -extremes[1]


def _rank_and_size(comm: Any) -> tuple[int, int]:
    """The rank and the number of ranks in a communicator, which is freed."""
    found = _mpi.rank(comm), _mpi.size(comm)
    _mpi.check(library.MPI_Comm_free(ctypes.byref(comm)))
    return found


def _create(parent: Any, ranks: Sequence[int], tag: int = 0) -> Any:
    """A communicator of some ranks of another. Collective over them."""
    everyone, some, comm = _mpi.Handle(), _mpi.Handle(), _mpi.Handle()
    numbers = (ctypes.c_int * len(ranks))(*ranks)
    _mpi.check(library.MPI_Comm_group(parent, ctypes.byref(everyone)))
    _mpi.check(library.MPI_Group_incl(everyone, ctypes.c_int(len(ranks)), numbers, ctypes.byref(some)))
    with _counts.part_call(parent, ranks, f"create {tag}"):
        _mpi.check(library.MPI_Comm_create_group(parent, some, ctypes.c_int(tag), ctypes.byref(comm)))
    # MPICH sets a handler that aborts, not the parent's.
    _mpi.check(library.MPI_Comm_set_errhandler(comm, _mpi.constant("ERRORS_RETURN")))
    for group in (everyone, some):
        _mpi.check(library.MPI_Group_free(ctypes.byref(group)))
    return comm


_groups: list[World] = []


def subset_of(ranks: Sequence[int]) -> World:
    """A World of some of the ranks, by their numbers in world(). Collective over them."""
    comm = _create(world().plain, ranks)
    made = World(comm, world().forward)
    made.numbers = tuple(ranks)
    _mpi.check(library.MPI_Comm_free(ctypes.byref(comm)))
    return made


def group_of(ranks: Sequence[int]) -> World:
    """As subset_of(). The World lives until MPI ends."""
    _groups.append(subset_of(ranks))
    return _groups[-1]


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


def init(comm: Any = None) -> None:
    """Initialise on the ranks of a communicator. Collective over comm; a second call does nothing.

    Args:
        comm: None for MPI_COMM_WORLD, a communicator of mpi4py, or a list of ranks of MPI_COMM_WORLD, over
            which the call is then collective.

    Raises:
        Error, ImportError, TypeError: see mpix_sparse.init().
    """
    global _world
    if _world is not None:
        return
    if not isinstance(comm, (list, tuple)) or len(comm) == 0:
        _world = World(None if isinstance(comm, (list, tuple)) else comm)
        return
    some = _create(_mpi.communicator(None), comm)
    _world = World(some)
    _mpi.check(library.MPI_Comm_free(ctypes.byref(some)))


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


def cross_rank() -> int:
    """The number of this node, among the nodes that have a rank with this local_rank()."""
    return world().cross_rank


def cross_size() -> int:
    """The number of nodes that have a rank with this local_rank()."""
    return world().cross_size


def is_homogeneous() -> bool:
    """True if every node has the same number of ranks."""
    return world().is_homogeneous


def report(dtype: torch.dtype | None = None) -> Report:
    """Report on the last reduction that has completed for tensors of a type; None is the type of the last one
    that has started. If this package's own functions have made none, those of torch.distributed count: on its
    default group, or the first other one. Local.

    Raises:
        Error: no call has completed.
    """
    problem: Error | None = None
    for ranks in (world(), *_groups):
        comm = ranks.last if dtype is None else ranks.comm(str(dtype).replace("torch.", ""))
        try:
            return _inquiry.report(comm)
        except Error as error:
            problem = problem or error
    assert problem is not None
    raise problem
