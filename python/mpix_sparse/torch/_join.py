# SPDX-License-Identifier: BSD-3-Clause
"""Steps of optimizers, and join(), for ranks that run out of batches before others.

In each step the ranks compute the maximum and the minimum of one integer, the step code: twice the number of
the step's optimizer, plus one if the rank has gradients to reduce. Ranks in join() have code zero, and do not
count for the minimum. So ranks in join() learn which optimizer makes a step, and take part in it without
gradients; and all ranks learn if they make steps of different ones. The reduction of the code overlaps with
those of the gradients, except when a rank must first know if any rank has gradients.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import Counter
from typing import Any, Sequence

from .. import _mpi
from .._pending import PendingCall, Handle
from .._library import library
from ._checked import MismatchError
from ._world import World, world

_participants: list[weakref.ref[Any]] = []  # objects that make steps; the same order on all ranks
_of_some: Counter[tuple[int, ...]] = Counter()  # number of those of some ranks, by these ranks
_retired: list[Any] = []  # objects that make no more steps here, but may on other ranks
_steps = 0  # since the last join()
_JOINS = -(1 << 62)  # the negative of the step code in join(), for the minimum


def register(member: Any, some: tuple[int, ...] = ()) -> int:
    """Register an object that makes steps. All its ranks register in the same order.

    Args:
        member: its reduce_without_gradients() takes part in a step, if it is one of all ranks.
        some: its ranks, if they are not all; join() does not take part in their steps.

    Returns:
        Its number among those of its ranks.
    """
    if some:
        _of_some[some] += 1
        return _of_some[some]
    _retired.clear()
    _participants.append(weakref.ref(member))
    return len(_participants)


def retire(member: Any) -> None:
    """Keep a member that makes no more steps here alive until join() or the next register()."""
    _retired.append(member)


_mpi.add_finalize_hook(_retired.clear)


class StepCode:
    """The step codes of ranks, in flight. Collective over the ranks."""

    def __init__(self, code: int, ranks: World) -> None:
        self._handle = _start_max([code, -code if code else _JOINS], ranks)

    def wait(self) -> int:
        """Wait, and return the largest code.

        Raises:
            MismatchError: ranks make steps of different optimizers. On all ranks.
        """
        most, negative = self._handle.wait()
        if negative != _JOINS and most >> 1 != -negative >> 1:
            raise MismatchError(
                f"ranks make steps of different optimizers: of DistributedOptimizer {-negative >> 1}, in the "
                f"order in which they were created, and of {most >> 1}"
            )
        return most


def start_step(number: int, ranks: World) -> StepCode:
    """Start a step of a member; the caller waits for the code at the end of the step. Collective over the
    member's ranks."""
    global _steps
    _steps += ranks is world()
    return StepCode(2 * number + 1, ranks)


def any_rank_has_new(number: int, new: bool, ranks: World) -> bool:
    """True if any rank has new gradients in a member's step; all ranks make the step then. Collective;
    blocks."""
    global _steps
    any_new = bool(StepCode(2 * number + new, ranks).wait() & 1)
    _steps += any_new and ranks is world()
    return any_new


def _start_max(numbers: Sequence[int], ranks: World) -> Handle:
    values = (ctypes.c_longlong * len(numbers))(*numbers)
    pending = PendingCall(values, lambda: list(values))
    how = ctypes.c_int(len(numbers)), _mpi.constant("INT64_T"), _mpi.constant("MAX"), ranks.plain
    request = ctypes.byref(pending.request)
    return pending.begin(library.MPI_Iallreduce(_mpi.IN_PLACE, values, *how, request))


def _participant(number: int) -> Any:
    member = _participants[number - 1]() if number <= len(_participants) else None
    if member is None:
        raise RuntimeError(
            f"another rank makes a step of its DistributedOptimizer {number}, which this rank has no more or "
            "not yet; all ranks make the same ones, and call join() before they make another instead"
        )
    return member


def join(device: Any = -1) -> int:
    """Take part, without gradients, in the steps that other ranks still make, until all ranks are here.

    Collective: every rank calls it when it has no more batches; blocks. Meanwhile the other ranks make no
    calls other than steps of their DistributedOptimizers. Average still divides by the number of all ranks.
    join() does not change the parameters of its rank. Afterwards copy those of the last rank to all ranks:
    `broadcast_parameters(model.state_dict(), join())`.

    The plans and buffers of a deleted optimizer are kept until join() or until the next DistributedOptimizer
    is created.

    Args:
        device: Horovod's argument; ignored.

    Returns:
        A rank that made the most steps.

    Raises:
        RuntimeError: another rank makes a step of an optimizer that this rank does not have. Only on this
            rank.
    """
    global _steps
    mine = _steps * world().size + world().rank
    while (code := StepCode(0, world()).wait()) != 0:
        if code & 1:
            _participant(code // 2).reduce_without_gradients()
    _steps = 0
    _retired.clear()
    return int(_start_max([mine], world()).wait()[0] % world().size)
