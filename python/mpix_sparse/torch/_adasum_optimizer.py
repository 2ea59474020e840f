# SPDX-License-Identifier: BSD-3-Clause
"""The optimizer of DistributedOptimizer(op=Adasum): each rank makes a step with its own gradients, and the
changes of parameters are combined by Adasum."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Iterator

import torch

from ._adasum import start_adasum
from ._compressor import Compressor
from ._world import world


class Adaptive:
    """Mixin that overrides methods of an optimizer's class."""

    _compression: Compressor
    _reducer_ref: Callable[[], Any]  # weak; the original optimizer shares this attribute

    @property
    def communication_seconds(self) -> float:
        """Seconds that this rank has spent so far to combine changes."""
        return self.__dict__.get("_adasum_seconds", 0.0)

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """An attribute that torch.amp.GradScaler reads first in its step().

        Raises:
            RuntimeError: always, since ranks without infinities would wait for a rank that skips its step.
        """
        raise RuntimeError("GradScaler is not for Adasum, whose ranks make steps with their own gradients")

    def synchronize(self) -> None:
        """Do nothing: gradients are not reduced."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Not for Adasum, which combines changes of parameters within step().

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("skip_synchronize() is not for Adasum, whose step() changes all ranks' parameters")
        yield

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step with this rank's gradients, and combine the changes of all ranks. Collective; blocks.

        Raises:
            NotImplementedError, ValueError: see allreduce() with op Adasum; on all ranks.
        """
        return self._reduce_and(super().step, closure)  # type: ignore[misc]

    @torch.no_grad()
    def _reduce_and(self, step: Callable[..., Any], closure: Callable[[], Any] | None) -> Any:
        parameters = [
            parameter
            for group in self.param_groups  # type: ignore[attr-defined]
            for parameter in group["params"]
            if parameter.requires_grad
        ]
        starts = [parameter.detach().clone() for parameter in parameters]
        result = step(closure)
        changes = [self._compression.compress(after - start) for after, start in zip(parameters, starts)]
        begin = time.perf_counter()
        start_adasum(changes, changes, world())
        self._adasum_seconds = self.communication_seconds + time.perf_counter() - begin
        for parameter, start, change in zip(parameters, starts, changes):
            parameter.copy_(start + change.to(start.dtype))
        return result
