# SPDX-License-Identifier: BSD-3-Clause
"""join(), for ranks that run out of batches before others.

In each step the ranks compute the maximum of one integer, the step code: twice the number of the step's
optimizer, plus one if the rank has gradients to reduce, or zero from ranks in join(). So ranks in join()
learn which optimizer makes a step, and take part in it without gradients. The reduction of the code
overlaps with those of the gradients, except when a rank must first know if any rank has gradients.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from .. import _mpi
from .._pending import PendingCall, Handle
from .._library import library
from ._world import World, world

_participants: list[weakref.ref[Any]] = []  # objects that make steps; the same order on all ranks
_retired: list[Any] = []  # objects that make no more steps here, but may on other ranks
_steps = 0  # since the last join()


def register(member: Any) -> int:
    """Register an object that makes steps; its reduce_without_gradients() takes part in a step. Returns its
    number. All ranks register in the same order."""
    _retired.clear()
    _participants.append(weakref.ref(member))
    return len(_participants)


def retire(member: Any) -> None:
    """Keep a member that makes no more steps here alive until join() or the next register()."""
    _retired.append(member)


_mpi.add_finalize_hook(_retired.clear)


def start_step(number: int, ranks: World) -> Handle:
    """Start a step of a member; the caller waits for the handle at the end of the step. Collective over the
    member's ranks. A member of some ranks only has number 0, and join() does not take part in its steps."""
    global _steps
    _steps += number > 0
    return _max_over_ranks(2 * number + 1, ranks)


def any_rank_has_new(number: int, new: bool, ranks: World) -> bool:
    """True if any rank has new gradients in a member's step; all ranks make the step then. Collective;
    blocks."""
    global _steps
    any_new = bool(_max_over_ranks(2 * number + new, ranks).wait() & 1)
    _steps += any_new and number > 0
    return any_new


def _max_over_ranks(number: int, ranks: World | None = None) -> Handle:
    value = ctypes.c_longlong(number)
    pending = PendingCall(value, lambda: value.value)
    how = ctypes.c_int(1), _mpi.constant("INT64_T"), _mpi.constant("MAX"), (ranks or world()).plain
    request = ctypes.byref(pending.request)
    return pending.begin(library.MPI_Iallreduce(_mpi.IN_PLACE, ctypes.byref(value), *how, request))


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
    while (code := _max_over_ranks(0).wait()) != 0:
        if code & 1:
            _participant(code // 2).reduce_without_gradients()
    _steps = 0
    _retired.clear()
    return int(_max_over_ranks(mine).wait() % world().size)
