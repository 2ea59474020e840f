# SPDX-License-Identifier: BSD-3-Clause
"""Functions that all ranks call. If Python refuses the names or the number of one rank's arguments, the other
ranks get an exception too: otherwise their call would match the next call of this rank."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _comm_of(function: Callable[..., Any], given: Any, named: Any) -> Any:
    """The communicator of a call, or of the plan whose method it is; None for MPI_COMM_WORLD."""
    if "comm" in named or not given:
        return named.get("comm")
    first = next(iter(inspect.signature(function).parameters))
    return given[0] if first == "comm" else getattr(given[0], "_comm", None)


def collective(refuse: Callable[[Exception, Any], None]) -> Callable[[_Function], _Function]:
    """Decorate a function.

    Args:
        refuse: makes the call of the other ranks fail, from the exception and the communicator.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            try:
                return function(*given, **named)
            except TypeError as error:
                where = error.__traceback__
                if where is not None and where.tb_next is None:  # the function has not begun
                    refuse(error, _comm_of(function, given, named))
                raise

        return call  # type: ignore[return-value]

    return decorate
