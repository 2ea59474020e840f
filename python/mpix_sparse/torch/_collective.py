# SPDX-License-Identifier: BSD-3-Clause
"""Functions that all ranks call, and what one rank does if it has an error before it starts its call."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar

from ._agree import Agreement
from ._ops import is_compiling
from ._process_set import ranks_of
from ._world import World, total

_Function = TypeVar("_Function", bound=Callable[..., Any])


def share_error(error: Exception, ranks: World) -> None:
    """Let the other ranks, which make a call that this rank cannot start, have an exception. Collective."""
    if ranks.checks:
        try:
            Agreement(ranks, "", str(error) or type(error).__name__).start().wait()
        except (RuntimeError, ValueError):
            pass  # the caller raises the error itself


def _ranks_of_call(function: Callable[..., Any], given: Any, named: Any) -> World | None:
    """The ranks that make a call; None if they are not known, or this rank is not one of them."""
    if given and hasattr(given[0], "ranks_of_calls"):
        return given[0].ranks_of_calls
    try:
        members = inspect.signature(function).bind_partial(*given, **named).arguments.get("process_set")
    except TypeError:  # the error is in the arguments
        members = named.get("process_set")
    try:
        return ranks_of(members)
    except ValueError:
        return None


def collective(function: _Function) -> _Function:
    """Decorate a function that all ranks call. An exception that one rank raises before it has started a call
    is an exception on the others too, also if Python raises it for wrong arguments."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if is_compiling():
            return function(*given, **named)
        before = total.calls
        try:
            return function(*given, **named)
        except Exception as error:
            ranks = _ranks_of_call(function, given, named) if total.calls == before else None
            if ranks is not None:
                share_error(error, ranks)
            raise

    return call  # type: ignore[return-value]
