# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that have no more batches while others do.

Each step has a word from each rank: twice the number of its optimizer, and one more if there are gradients to
reduce; or zero from ranks in join(), which thus learn that there is a step, and of which optimizer, and take
part in it without gradients. The words travel while the step's gradients do, but where a rank cannot tell
whether others have any.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from .. import _mpi
from .._flight import Flight, Handle
from .._library import library
from ._world import world

_members: list[weakref.ref[Any]] = []  # whoever makes steps, in the order of their making, on all ranks
_left: list[Any] = []  # those that make none here any more, but may on other ranks
_steps = 0  # since the last join()


def enter(member: Any) -> int:
    """Take note of an object with stand_in(), which takes part in a step of it. Returns its number."""
    _left.clear()
    _members.append(weakref.ref(member))
    return len(_members)


def leave(member: Any) -> None:
    """Have a member, which makes no more steps here, live until join(), or until another one enters."""
    _left.append(member)


_mpi.before_end(_left.clear)


def announce(number: int) -> Handle:
    """Start a step of a member; the handle is to be waited for at its end. Collective."""
    global _steps
    _steps += 1
    return _largest(2 * number + 1)


def ask(number: int, new: bool) -> bool:
    """Whether any rank has something new in a member's step; if so, all make the step. Collective."""
    global _steps
    any_new = bool(_largest(2 * number + new).wait() & 1)
    _steps += any_new
    return any_new


def _largest(number: int) -> Handle:
    word = ctypes.c_longlong(number)
    flight = Flight(word, lambda: word.value)
    how = ctypes.c_int(1), _mpi.constant("INT64_T"), _mpi.constant("MAX"), world().plain
    request = ctypes.byref(flight.request)
    return flight.begin(library.MPI_Iallreduce(_mpi.IN_PLACE, ctypes.byref(word), *how, request))


def _member(number: int) -> Any:
    member = _members[number - 1]() if number <= len(_members) else None
    if member is None:
        raise RuntimeError(
            f"another rank makes a step of its DistributedOptimizer {number}, which this rank has no more or "
            "not yet; all ranks make the same ones, and call join() before they make another instead"
        )
    return member


def join(device: Any = -1) -> int:
    """Take part, without gradients, in the steps that other ranks still make, until all ranks are here.

    Collective, in that every rank calls it when its batches are used up; blocks. Meanwhile the other ranks
    make no other calls than steps of their DistributedOptimizers. Average still divides by the number of all
    ranks. A rank's parameters stay as they are in here; afterwards give all ranks those of the last one:
    `broadcast_parameters(model.state_dict(), join())`.

    An optimizer that is gone, such as one of a function that has returned, has its plans and buffers kept for
    this until here, or until the next DistributedOptimizer is made.

    Args:
        device: Horovod's; not looked at.

    Returns:
        A rank that made the most steps.

    Raises:
        RuntimeError: a step is of an optimizer that this rank has not. Only this rank learns of it.
    """
    global _steps
    mine = _steps * world().size + world().rank
    while (word := _largest(0).wait()) != 0:
        if word & 1:
            _member(word // 2).stand_in()
    _steps = 0
    _left.clear()
    return int(_largest(mine).wait() % world().size)
