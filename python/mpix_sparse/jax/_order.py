# SPDX-License-Identifier: BSD-3-Clause
"""The order of calls: an ordered effect. jax passes a token from one call to the next, in the order of the
program, so that calls are neither reordered nor removed. jax has no public interface for effects; this file
and _primitives.py have all uses of its internals."""

from __future__ import annotations

from typing import Any

import jax

try:
    from jax._src import dispatch, effects
except ImportError as reason:
    raise ImportError(f"mpix_sparse.jax does not support jax {jax.__version__}: {reason}") from reason


class _Order(effects.Effect):
    """The effect of every call. All instances are equal, in all processes."""

    def __repr__(self) -> str:
        return "mpix_sparse"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Order)

    def __hash__(self) -> int:
        return 0x6D706978


ORDER = _Order()
for _set in (
    effects.lowerable_effects,
    effects.ordered_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.remat_allowed_effects,
):
    _set.add_type(_Order)


def wait_for_calls() -> None:
    """Wait until the calls that this thread has started are complete.

    jax raises the error of an asynchronous call again in later calls, since they take its token. After this
    function it does not: errors are dropped here, and raised by the results of the call.
    """
    try:
        jax.effects_barrier()
    except Exception:
        dispatch.runtime_tokens.clear()
