# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the backend in flight, as torch.distributed has them."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from . import _probe
from ._progress import future_of
from ._work import Work, WorkGroup

unclaimed: dict[Any, None] = {}  # calls that nobody has waited for, the oldest first
MAX_UNCLAIMED = 100  # beyond this many, complete calls are dropped


class BackendWork(torch._C._distributed_c10d.Work):
    """Calls in flight as a Work of torch.distributed."""

    def __init__(self, works: Sequence[Work], tensors: Any) -> None:
        super().__init__()
        self._works, self._tensors = WorkGroup(works), tensors
        self._error: Exception | None = None
        # In some versions C++ code uses this object without a reference to it.
        unclaimed[self] = None
        oldest = next(iter(list(unclaimed)))  # a copy, since other threads may change it
        if len(unclaimed) > MAX_UNCLAIMED and oldest.is_completed():
            unclaimed.pop(oldest, None)

    def is_completed(self) -> bool:
        """True if the calls are complete. Makes progress on all calls in flight."""
        return self._works.done()

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the calls. The timeout is ignored, since MPI cannot cancel a collective call."""
        unclaimed.pop(self, None)
        if self._error is not None:
            raise self._error
        self._works.wait()
        return True

    def exception(self) -> Exception | None:
        """The error of the calls; None if they succeeded, or are in flight."""
        if self._error is None and self.is_completed():
            try:
                self._works.wait()
            except Exception as error:
                self._error = error
        return self._error

    def is_success(self) -> bool:
        """True if the calls are complete without an error."""
        return self.is_completed() and self.exception() is None

    def synchronize(self) -> None:
        """Wait for the calls."""
        self.wait()

    def result(self) -> Any:
        """Wait for the calls; returns their output tensors."""
        self.wait()
        return self._tensors

    def get_future(self) -> Any:
        """A future of the output tensors."""
        unclaimed.pop(self, None)
        return future_of(self._works, self.result)


class AnySourceWork(BackendWork):
    """A receive from any rank as a Work of torch.distributed."""

    def __init__(self, work: _probe.AnySource, tensors: Any) -> None:
        super().__init__([work], tensors)
        self._message = work

    def _source_rank(self) -> int:
        """Wait for the message; returns the rank that has sent it."""
        self.wait()
        return self._message.source

    source_rank = _source_rank
