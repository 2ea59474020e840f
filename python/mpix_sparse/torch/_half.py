# SPDX-License-Identifier: BSD-3-Clause
"""Calls on 16-bit floats. They have communicators of their own, where ranks whose tensors have another type
make no call and would not be missed. So each call starts when another one has compared the types: an empty
allreduce of coordinates on the communicator of all other types, with uint16 in place of float16, and int16 of
bfloat16."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable

import numpy

from .. import _coo, _mpi
from .._pending import SPINS, Handle
from .._error import Error

_VALUES = {"float16": "uint16", "bfloat16": "int16"}
_INDICES = {False: "uint32", True: "int32"}  # by sparse; indices of tensors are int64
_lock = threading.Lock()
_waiting: list[HalfCall] = []  # calls that have not started; under the lock

EXPLANATION = "; float16 and bfloat16 are compared as uint16 and int16 of an MPIX_Sparse_allreduce_coo"


class HalfCall:
    """The handle of a call on 16-bit floats.

    Args:
        comm: the communicator on which types are compared.
        name: the type.
        start: starts the call, whose arguments have been checked, and returns its handle.
    """

    def __init__(
        self, comm: Any, name: str, is_sparse: bool, count: int, op: str, start: Callable[[], Handle]
    ) -> None:
        self._start, self._comm = start, comm.value
        self._handle: Handle | None = None
        self._error: Exception | None = None
        indices, values = numpy.empty(0, _INDICES[is_sparse]), numpy.empty(0, _VALUES[name])
        self._comparison = _coo.iallreduce_coo(indices, values, count, op, comm=comm)
        with _lock:
            _waiting.append(self)
        advance()

    def _begin(self) -> None:
        try:
            self._comparison.wait()
            self._handle = self._start()
        except Error as error:
            self._error = error

    def done(self) -> bool:
        """True if the call is complete. Makes progress on all calls in flight."""
        advance()
        return self._error is not None or (self._handle is not None and self._handle.done())

    def wait(self) -> Any:
        """Wait for the call and return its result.

        Raises:
            Error: types or other arguments differ between ranks, or the call failed; on every rank.
        """
        tests = 0
        while not self.done():
            tests += 1
            os.sched_yield() if tests < SPINS else time.sleep(0)
        if self._error is not None:
            raise self._error
        return self._handle.wait()

    def advance_first(self, blocked: set[Any]) -> bool:
        """Start the call if the types have been compared, and no earlier one with its communicator waits."""
        if self._comm in blocked or not self._comparison.done():
            blocked.add(self._comm)
            return False
        self._begin()
        return True


def are_waiting() -> bool:
    """True if calls wait for their comparison."""
    return bool(_waiting)


def advance() -> None:
    """Start the calls whose types have been compared, in the order in which the program made them."""
    if not _waiting or not _lock.acquire(blocking=False):
        return
    try:
        blocked: set[Any] = set()
        _waiting[:] = [call for call in _waiting if not call.advance_first(blocked)]
    finally:
        _lock.release()


def _finish() -> None:
    while _waiting:
        advance()
        time.sleep(0)


_mpi.add_finalize_hook(_finish)
