# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions that one rank raises before a collective call, for an error in its arguments. The rank makes a
call with an argument that all ranks refuse, so that the call of the others fails as well, whichever function
of the C library it is of."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, TypeVar

from . import _hints, _mpi, _problems
from ._error import Error
from ._library import library
from ._pending import PendingCall

_WRONG = TypeError, ValueError, BufferError
_Made = TypeVar("_Made")


def _checked(comm: Any) -> Any:
    """The handle of a communicator whose ranks compare their arguments; None if they do not."""
    try:
        handle = _hints.communicator(comm)
    except (*_WRONG, Error):
        return None
    return handle if _mpi.size(handle) > 1 and _hints.get_info(handle).get(_hints.FORWARD) == "0" else None


def refuse_call(error: Exception, comm: Any) -> None:
    """Make the blocking call of the other ranks fail. Collective; blocks."""
    handle = _checked(comm)
    if handle is not None:
        code = library.MPIX_Sparse_allreduce_coo(*_problems.refused_arguments(handle))
        _problems.exchange(code, str(error), handle)


def refuse_start(error: Exception, comm: Any) -> None:
    """Make the nonblocking call of the other ranks fail. Collective; does not block."""
    handle = _checked(comm)
    if handle is not None:
        arguments = _problems.refused_arguments(handle)
        pending = PendingCall(arguments, None, str(error))
        request = ctypes.byref(pending.request)
        if (code := library.MPIX_Isparse_allreduce_coo(*arguments, request)) == 0:
            pending.begin(code)


def prepare(
    refuse: Callable[[Exception, Any], None], comm: Any, make: Callable[..., _Made], *arguments: Any
) -> _Made:
    """Return make(*arguments). If that raises, call refuse() first."""
    try:
        return make(*arguments)
    except _WRONG as error:
        refuse(error, comm)
        raise
