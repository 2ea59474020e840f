# SPDX-License-Identifier: BSD-3-Clause
"""Process sets: some of the ranks, which make collective calls among themselves, with Horovod's interface."""

from __future__ import annotations

from typing import Any, Sequence

from .. import _mpi, _pending
from . import _world
from ._agree import agree
from ._world import World, subset_of, world


class ProcessSet:
    """Some of the ranks. init() or add_process_set() make it usable.

    Args:
        ranks_or_comm: the numbers of ranks, in any order.

    Attributes:
        process_set_id: a number that is the same on all ranks; 0 for all ranks, None while it is not usable.
        ranks: the ranks' numbers, sorted.

    Raises:
        ValueError: the argument is not a list of one or more different ranks.
        NotImplementedError: the argument is a communicator.
    """

    def __init__(self, ranks_or_comm: Any) -> None:
        self.process_set_id: int | None = None
        self._ranks = _numbers(ranks_or_comm)
        self._members: World | None = None

    @property
    def ranks(self) -> list[int]:
        """The ranks' numbers, sorted."""
        return list(self._ranks)

    def size(self) -> int | None:
        """The number of ranks; None while the set is not usable."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self) -> int | None:
        """The number of this process among the set's ranks; None if it is not one of them, or the set is not
        usable."""
        return self.ranks.index(world().rank) if self.process_set_id is not None and self.included() else None

    def included(self) -> bool:
        """True if this process is one of the set's ranks."""
        return world().rank in self.ranks

    def members(self) -> World:
        """The communicators of the set's ranks.

        Raises:
            ValueError: the set is not usable, or this process is not one of its ranks.
        """
        if self.process_set_id is None:
            raise ValueError(
                f"{self} has not been added, or was removed; call add_process_set() on all ranks first"
            )
        if self._members is None:
            raise ValueError(f"rank {world().rank}, which is this process, is not in {self}")
        return self._members

    def __str__(self) -> str:
        number = "a process set" if self.process_set_id is None else f"process set {self.process_set_id}"
        return f"{number} of ranks {self.ranks}"


def _numbers(ranks: Any) -> list[int]:
    """The sorted numbers of a list of ranks."""
    if hasattr(ranks, "Get_rank"):
        raise NotImplementedError("a process set is made from a list of ranks, not from a communicator")
    listed = list(ranks) if isinstance(ranks, (list, tuple, range, set)) else []
    if not listed or not all(type(rank) is int for rank in listed) or len(set(listed)) != len(listed):
        raise ValueError(f"a process set needs a list of one or more different ranks, not {ranks!r}")
    return sorted(listed)


class _AllRanks(ProcessSet):
    """The process set of all ranks."""

    def __init__(self) -> None:
        self.process_set_id = 0

    @property
    def ranks(self) -> list[int]:
        """The ranks' numbers."""
        return list(range(world().size))

    def members(self) -> World:
        """The communicators of all ranks."""
        return world()


global_process_set = _AllRanks()
_sets: dict[int, ProcessSet] = {}  # those that are usable, by process_set_id
_created = 0


def set_of(process_set: Any) -> ProcessSet:
    """The process set of a call's argument; None is that of all ranks.

    Raises:
        ValueError: the argument is not a process set.
    """
    if process_set is None:
        return global_process_set
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set is {process_set!r}; it must be None or a ProcessSet")
    return process_set


def ranks_of(process_set: Any) -> World:
    """The communicators of a call's argument process_set; None is all ranks.

    Raises:
        ValueError: the argument is not a process set that can be used here. Only on this rank.
    """
    return world() if process_set is None else set_of(process_set).members()


def set_of_number(number: int) -> ProcessSet:
    """The usable process set with this process_set_id."""
    found = global_process_set if number == 0 else _sets.get(number)
    if found is None:
        raise ValueError(f"process_set is {number}; there is no such process set")
    return found


def root_in(process_set: Any, root_rank: int) -> int:
    """The number, among a set's ranks, of a root that is given by its number among all ranks.

    Raises:
        ValueError: the root is not in the set.
    """
    members = set_of(process_set)
    if members is global_process_set:
        return root_rank
    if root_rank not in members.ranks:
        raise ValueError(f"root_rank is {root_rank}, which is not in {members}")
    return members.ranks.index(root_rank)


def _problem(made: Any) -> str:
    """What is wrong with a set that is to be added; empty if nothing is."""
    if not isinstance(made, ProcessSet):
        return f"a process set or a list of ranks is needed, not {made!r}"
    if made is global_process_set or made.ranks == global_process_set.ranks:
        return "the process set of all ranks exists; it is global_process_set"
    if any(made.ranks == other.ranks for other in _sets.values()):
        return f"there is a process set of ranks {made.ranks} already"
    if made.ranks[0] < 0 or made.ranks[-1] >= world().size:
        return f"the process set has ranks {made.ranks}, and there are ranks 0 to {world().size - 1}"
    return ""


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Make a process set usable. Collective over all ranks, also those that are not in it; blocks.

    Args:
        process_set: a ProcessSet, or the numbers of its ranks; the same on all ranks.

    Returns:
        The process set.

    Raises:
        ValueError: a rank does not exist, a set of these ranks exists, or ranks pass different sets; on all
            ranks.
    """
    global _created
    made, problem = process_set, ""
    if not isinstance(process_set, ProcessSet):
        try:
            made = ProcessSet(process_set)
        except ValueError as reason:
            problem = str(reason)
    problem = problem or _problem(made)
    agree("" if problem else f"add_process_set({made.ranks})", problem, world())
    _created += 1
    if made.included():
        made._members = subset_of(made.ranks)
    made.process_set_id = _created
    _sets[_created] = made
    return made


def remove_process_set(process_set: ProcessSet) -> bool:
    """Wait for calls in flight and free the communicators of a process set. Collective over all ranks.

    Returns:
        True; False for the process set of all ranks, and for one that is not usable.

    Raises:
        ValueError: ranks pass different sets; on all ranks.
    """
    number = process_set.process_set_id if isinstance(process_set, ProcessSet) else None
    agree(f"remove_process_set({number})", "", world())
    if not number:
        return False
    _pending.wait_for_all()
    _remove(number)
    return True


def _remove(number: int) -> None:
    removed = _sets.pop(number)
    if removed._members is not None:
        removed._members.free()
    removed.process_set_id = removed._members = None


def _remove_all() -> None:
    if _sets and _mpi.is_initialized():
        _pending.wait_for_all()
        for number in sorted(_sets):
            _remove(number)
    _sets.clear()


_mpi.add_finalize_hook(_remove_all)  # called before the hook of _world


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Initialise on the ranks of a communicator. Collective over comm; a second call does nothing.

    Args:
        comm: None for MPI_COMM_WORLD, a communicator of mpi4py, or a list of ranks of MPI_COMM_WORLD, over
            which the call is then collective.
        process_sets: ProcessSets to add, the same on all ranks. "dynamic" is Horovod's word for none;
            add_process_set() can be called in each case.

    Raises:
        Error, ImportError, TypeError: see mpix_sparse.init().
        ValueError: a process set cannot be added, on all ranks.
    """
    if _world.is_initialized():
        return
    _world.init(comm)
    for each in [] if process_sets in (None, "dynamic") else process_sets:
        add_process_set(each)


def shutdown() -> None:
    """Wait for calls in flight and free the communicators. Collective. MPI is finalized when the program
    ends."""
    _remove_all()
    _world.shutdown()
