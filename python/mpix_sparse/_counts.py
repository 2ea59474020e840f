# SPDX-License-Identifier: BSD-3-Clause
"""Counts the calls on each communicator, which tells if a call in flight can complete: the ranks that take
part in it must all have started as many calls. _watchdog.py asks when a wait is long.

Importing this module replaces the collective functions of the C library and of MPI, and MPI's messages, by
ones that count. Calls on communicators that are not registered are not counted."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
from collections import Counter
from typing import Any, Callable, Dict, Iterator, Sequence

from . import _mpi
from ._library import library


class Counts:
    """Calls of one kind on one communicator.

    Attributes:
        name: the same on all ranks, and of no other calls.
        size: number of ranks that take part.
        started: number of calls that this rank has started.
        blocking: number of the call that a blocking function makes; 0 if there is none.
        in_flight: numbers of the other calls that are not complete, and their functions.
    """

    __slots__ = "name", "size", "started", "blocking", "in_flight"

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size, self.started, self.blocking = name, size, 0, 0
        self.in_flight: dict[int, str] = {}

    def oldest(self, is_blocked: bool = False) -> tuple[int, str]:
        """The number of the oldest call in flight, and its function; 0 if there is none. Called in any
        thread. See state() for is_blocked."""
        others = [] if is_blocked else [*self.in_flight.copy().items()]
        return min([*others, *[(self.blocking, _CALL)] * (self.blocking > 0)], default=(0, ""))

    def end(self, number: int) -> None:
        """Note that a call, which is not a blocking one, is complete."""
        self.in_flight.pop(number, None)


# The positions of the communicator among the arguments of blocking functions, whose calls are complete when
# they return, and of those that return a request. The C library's functions on one communicator form one
# sequence of calls. Those of MPI are a sequence for each function, since ranks may be in different ones; so
# are MPIX_Sparse_comm_set_info, and MPIX_Sparse_plan_start_all, which makes one call of plans or several.
_SET_INFO = "MPIX_Sparse_comm_set_info"
_BLOCKING = {
    _SET_INFO: 0,
    "MPIX_Sparse_allreduce": 5,
    "MPIX_Sparse_allreduce_coo": 7,
    "MPIX_Sparse_allreduce_init": 5,
    "MPIX_Sparse_allreduce_coo_init": 4,
    "MPIX_Sparse_reduce_scatter": 5,
    "MPIX_Sparse_reduce_scatter_coo": 8,
    "MPIX_Sparse_reduce_scatter_coo_init": 5,
    "MPIX_Sparse_allgather_coo": 6,
    "MPIX_Sparse_allgather_coo_init": 3,
    "MPIX_Sparse_bcast_delta": 5,
    "MPIX_Sparse_bcast_coo": 7,
    "MPIX_Sparse_profile": 3,
    "MPIX_Sparse_topk_threshold": 6,
    "MPIX_Sparse_dgc_step": 6,
    "MPI_Allgather": 6,
    "MPI_Allreduce": 5,
    "MPI_Bcast": 4,
    "MPI_Comm_dup": 0,
    "MPI_Comm_split": 0,
    "MPI_Comm_split_type": 0,
}
_NONBLOCKING = {
    "MPIX_Isparse_allreduce": 5,
    "MPIX_Isparse_allreduce_coo": 7,
    "MPIX_Isparse_reduce_scatter": 5,
    "MPIX_Isparse_reduce_scatter_coo": 8,
    "MPIX_Isparse_allgather_coo": 6,
    "MPI_Iallgather": 6,
    "MPI_Iallgatherv": 7,
    "MPI_Iallreduce": 5,
    "MPI_Ialltoall": 6,
    "MPI_Ialltoallv": 8,
    "MPI_Ibarrier": 0,
    "MPI_Ibcast": 4,
    "MPI_Igather": 7,
    "MPI_Ireduce_scatter": 5,
    "MPI_Iscatter": 7,
}
# Functions: one call, and the start of a plan, which ranks do not always compare.
_CALL, _PLAN = "call", "plan"
_LIBRARY = "MPIX"  # the kind of most functions of the C library
_START_ALL = "MPIX_Sparse_plan_start_all"

_thread = threading.get_ident
_NO_LOCK = contextlib.nullcontext()


class _Locks(Dict[int, Any]):
    """Locks by handle of a communicator, made when they are first asked for."""

    def __missing__(self, handle: int) -> Any:
        return self.setdefault(handle, threading.RLock())


class _NoLocks(_Locks):
    """For calls of MPI, which takes care of its threads."""

    def __missing__(self, handle: int) -> Any:
        return _NO_LOCK


_Table = dict[int, Counts]  # by handle of a communicator

_tables: dict[str, _Table] = {}  # by kind
_parts: dict[tuple[int, str], Counts] = {}  # of calls of some ranks, by communicator and name
_plans: dict[int, tuple[Counts, Counts]] = {}  # of starts alone and with others, by handle of a plan
_ranks: dict[int, tuple[str, int]] = {}  # name and own rank of a communicator, by its handle
_locks, _no_locks = _Locks(), _NoLocks()  # the C library takes one call at a time on a communicator
_made: Counter[str] = Counter()  # number of registered communicators, by label and ranks
started: dict[int, list[tuple[Counts, int]]] = {}  # calls for take(), by thread; no empty lists
callers: set[int] = set()  # threads that have started or tested a call; one that ends stays
_note_caller = callers.add


def take() -> tuple[Counts, int] | None:
    """The oldest call that this thread has started by a nonblocking function and that was not taken; None if
    there is none."""
    thread = _thread()
    calls = started.get(thread)
    if calls is None:
        return None
    if len(calls) == 1:
        del started[thread]
    return calls.pop(0)


def _give(counts: Counts, function: str = _CALL) -> None:
    """Count a call of a nonblocking function, for take()."""
    thread = _thread()
    _note_caller(thread)
    counts.started += 1
    counts.in_flight[counts.started] = function
    call = counts, counts.started
    if thread in started:
        started[thread].append(call)
    else:
        started[thread] = [call]


def _drop(code: int) -> int:
    """Forget the last call if it was not started."""
    if code != 0:
        calls = started[_thread()]
        counts, number = calls.pop()
        counts.end(number)
        if not calls:
            del started[_thread()]
    return code


def _blocking(
    function: Callable[..., int], position: int, table: _Table, locks: _Locks
) -> Callable[..., int]:
    find = table.get

    def blocking_call(*arguments: Any) -> int:
        handle = arguments[position].value
        _note_caller(_thread())
        with locks[handle]:
            counts = find(handle)
            if counts is None:
                return function(*arguments)
            counts.started = counts.blocking = counts.started + 1
            code = function(*arguments)
            counts.blocking = 0
            return code

    return blocking_call


def _nonblocking(
    function: Callable[..., int], position: int, table: _Table, locks: _Locks
) -> Callable[..., int]:
    find = table.get

    def call(*arguments: Any) -> int:
        handle = arguments[position].value
        with locks[handle]:
            counts = find(handle)
            if counts is None:
                return function(*arguments)
            _give(counts)
            return _drop(function(*arguments))

    return call


def _of_part(comm: int, name: str, size: int) -> Counts:
    """The calls with a name of some ranks of a communicator, by its handle."""
    if (comm, name) not in _parts:
        _parts[comm, name] = Counts(name, size)
    return _parts[comm, name]


@contextlib.contextmanager
def part_call(comm: Any, ranks: Sequence[int], what: str) -> Iterator[None]:
    """A blocking call of some ranks of a communicator; `what` tells calls of the same ranks apart."""
    _note_caller(_thread())
    if comm.value not in _ranks:
        yield
        return
    counts = _of_part(comm.value, f"{_ranks[comm.value][0]} {sorted(ranks)} {what}", len(ranks))
    counts.started = counts.blocking = counts.started + 1
    try:
        yield
    finally:
        counts.blocking = 0


def expect_message(comm: Any) -> Callable[[], None]:
    """Count a receive from any rank, until the returned function is called. It cannot complete while all
    other ranks wait: a message that they have sent would have been found."""
    name, own = _ranks.get(comm.value, ("", 0))
    _note_caller(_thread())
    if not name:
        return lambda: None
    counts = _of_part(comm.value, f"{name} any>{own}", 2)
    counts.started += 1
    counts.in_flight[counts.started] = _CALL
    return functools.partial(counts.end, counts.started)


def _message(function: Callable[..., int], is_send: bool) -> Callable[..., int]:
    """MPI_Isend or MPI_Irecv: calls of two ranks."""

    def call(*arguments: Any) -> int:
        rank, tag, comm = (argument.value for argument in arguments[3:6])
        name, own = _ranks.get(comm, ("", 0))
        if not name:
            return function(*arguments)
        source, target = (own, rank) if is_send else (rank, own)
        _give(_of_part(comm, f"{name} {source}>{target} {tag}", 2))
        return _drop(function(*arguments))

    return call


def _start_plan(function: Callable[..., int]) -> Callable[..., int]:
    def call(plan: Any, *arguments: Any) -> int:
        counts = _plans.get(plan.value)
        if counts is None:
            return function(plan, *arguments)
        _give(counts[0], _PLAN)
        return _drop(function(plan, *arguments))

    return call


def _start_plans(function: Callable[..., int]) -> Callable[..., int]:
    def call(length: Any, plans: Any, *arguments: Any) -> int:
        found = [_plans[plan] for plan in plans if plan in _plans]
        for _, counts in found:
            _give(counts, _PLAN)
        code = function(length, plans, *arguments)
        for _ in found:
            _drop(code)
        return code

    return call


def _replace(name: str, made: Callable[..., Callable[..., int]], *how: Any) -> None:
    function = getattr(library, name)
    setattr(library, name, made(function, *how))
    getattr(library, name).__wrapped__ = function


def _replace_all() -> None:
    for positions, made in ((_BLOCKING, _blocking), (_NONBLOCKING, _nonblocking)):
        for name, position in positions.items():
            is_ours = name.startswith(_LIBRARY)
            table = _tables.setdefault(_LIBRARY if is_ours and name != _SET_INFO else name, {})
            _replace(name, made, position, table, _locks if is_ours else _no_locks)
    _replace("MPI_Isend", _message, True)
    _replace("MPI_Irecv", _message, False)
    _replace("MPIX_Sparse_plan_start", _start_plan)
    _replace("MPIX_Sparse_plan_start_coo", _start_plan)
    _replace(_START_ALL, _start_plans)
    _tables[_START_ALL] = {}


_replace_all()


def register(comm: Any, label: str) -> None:
    """Count calls on a communicator from now on. Collective, in the order in which communicators with this
    label and these ranks are registered.

    Args:
        comm: the handle of an intracommunicator.
        label: tells communicators of the same ranks apart which several threads may create at a time.
    """
    ranks = _mpi.world_ranks(comm)
    if len(ranks) < 2 or min(ranks) < 0:
        return
    digest = hashlib.blake2b(repr((label, ranks)).encode(), digest_size=8).hexdigest()
    _made[digest] += 1
    name = f"{digest} {_made[digest]}"
    _ranks[comm.value] = name, _mpi.rank(comm)
    for kind, table in _tables.items():
        table[comm.value] = Counts(f"{name} {kind}", len(ranks))


def unregister(comm: Any) -> None:
    """Count calls on a communicator no more; MPI may give its handle to another one."""
    _ranks.pop(comm.value, None)
    for table in _tables.values():
        table.pop(comm.value, None)
    for key in [key for key in _parts if key[0] == comm.value]:
        del _parts[key]


def one_thread(comm: Any) -> Any:
    """A block in which no other thread calls the C library on a communicator."""
    return _locks[comm.value]


def is_registered(comm: Any) -> bool:
    """True if calls on a communicator are counted."""
    return comm.value in _ranks


def register_plan(plan: Any, comm: Any) -> None:
    """Count calls of a plan with those of its communicator."""
    if comm.value in _tables[_LIBRARY]:
        _plans[plan.value] = _tables[_LIBRARY][comm.value], _tables[_START_ALL][comm.value]


def unregister_plan(plan: Any) -> None:
    """Forget a plan, whose handle another one may get."""
    _plans.pop(plan.value, None)


def _used() -> list[Counts]:
    """All counts with calls. Called in any thread."""
    tables = [list(table.values()) for table in [*_tables.values(), _parts]]
    return [counts for table in tables for counts in table if counts.started]


def state(is_blocked: bool = False) -> list[list[Any]]:
    """Name, size, number of started calls, number of the oldest call in flight (0 if there is none), and its
    function, of all counts with calls. Called in any thread.

    Args:
        is_blocked: this rank waits in a blocking function only. Other calls in flight are left out: they may
            be complete, but nobody tests them, and nothing waits for them.
    """
    return [[counts.name, counts.size, counts.started, *counts.oldest(is_blocked)] for counts in _used()]


def total() -> int:
    """Number of calls that this process has started, on communicators that exist. Called in any thread."""
    return sum(counts.started for counts in _used())


def is_deadlock(states: dict[int, list[list[Any]]], waiting: set[int]) -> bool:
    """True if no call in flight of ranks that wait can complete.

    Args:
        states: of all ranks, by rank; see state().
        waiting: the ranks that wait for one of their calls in flight, and start none.
    """
    found: dict[str, list[Any]] = {}
    for entry in (entry for entries in states.values() for entry in entries):
        found.setdefault(entry[0], []).append(entry)
    for rank in waiting:
        calls = [entry for entry in states[rank] if entry[3]]
        if not calls or any(_may_complete(entry, found[entry[0]]) for entry in calls):
            return False
    return True


def needs_ended(states: dict[int, Any], waiting: set[int], ended: set[int]) -> bool:
    """True if no call in flight of a rank that waits can ever complete, since ranks that have ended have made
    fewer calls there.

    Args:
        states: of all ranks, by rank; see state(). None if there are too many calls.
        waiting, ended: the ranks that wait, and those that start no calls any more.
    """

    known = [{entry[0]: entry[2] for entry in states[rank]} for rank in ended if states[rank] is not None]

    def is_lost(name: str, size: int, number: int) -> bool:
        # A rank without an entry has made no call, or takes no part.
        absent = 0 if size == len(states) else number
        return any(number > made.get(name, absent) for made in known)

    for rank in waiting:
        calls = [entry for entry in states[rank] or [] if entry[3]]
        if calls and all(is_lost(name, size, number) for name, size, _, number, _ in calls):
            return True
    return False


def _may_complete(mine: Any, entries: list[Any]) -> bool:
    """True if all ranks have started a call in flight, and none is still in another function.

    Args:
        mine: the entry of a rank that is in this call; see state().
        entries: those of all ranks with this name.
    """
    _, size, _, number, function = mine
    if len(entries) < size or number > min(started for _, _, started, _, _ in entries):
        return False
    return all(theirs == function for _, _, _, other, theirs in entries if other == number)
