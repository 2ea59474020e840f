# SPDX-License-Identifier: BSD-3-Clause
"""Messages that are looked for before they are received: from any source, and those of a barrier with a time
limit."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import torch

from .. import _counts, _mpi
from .._library import library
from ._work import Work
from ._collectives import receive, refuse_tag, send

STATUS_INTEGERS = 16  # more than the status of any MPI has
TAGS = 4096  # barriers before a tag is used again
SLEEP_SECONDS = 100e-6

_lock = threading.Lock()


def find_message(source: int, tag: int, comm: Any) -> int:
    """The rank that has sent a message with a tag; -1 if there is none yet. Never waits."""
    flag, status = ctypes.c_int(), (ctypes.c_int * STATUS_INTEGERS)()
    where = ctypes.c_int(source), ctypes.c_int(tag), comm
    if code := library.MPI_Iprobe(*where, ctypes.byref(flag), status):
        _mpi.check(code)  # counts as a call that is complete
    return status[_mpi.STATUS_SOURCE] if flag.value else -1


class AnySource(Work):
    """A receive from any rank. It starts when a message is found, so that its source is known. See receive()
    for `types`.

    Attributes:
        source: the rank that has sent the message; -1 if none was found yet.
    """

    def __init__(self, tensor: torch.Tensor, tag: int, comm: Any, types: Any) -> None:
        refuse_tag(tag)
        self.source, self._arguments = -1, (tensor, tag, comm, types)
        self.orders = frozenset()
        self._receive: Work | None = None
        self._end_wait = _counts.expect_message(comm)

    def done(self) -> bool:
        """True if the message has been received. Makes progress on all calls in flight."""
        with _lock:  # no other thread receives the message that this one has found
            if self._receive is None:
                tensor, tag, comm, types = self._arguments
                self.source = find_message(_mpi.ANY_SOURCE, tag, comm)
                if self.source >= 0:
                    self._end_wait()
                    self._receive = receive(tensor, self.source, tag, comm, types)
        return self._receive is not None and self._receive.done()

    def wait(self) -> Any:
        """Wait for the message; returns the tensor."""
        while not self.done():
            time.sleep(0)
        assert self._receive is not None
        return self._receive.wait()


_barriers: dict[Any, int] = {}  # by communicator


def monitored_barrier(comm: Any, seconds: float, wait_all_ranks: bool) -> None:
    """Wait for all ranks, but not longer than a time. Rank 0 waits for a message from each rank, and answers.
    Collective; blocks.

    Args:
        comm: communicator on which no other messages are sent.
        seconds: time limit.
        wait_all_ranks: True if the error names all missing ranks, not only the first.

    Raises:
        RuntimeError: the time is over. On rank 0 the text names the missing ranks. After this error the group
            can be used only if the missing ranks arrive.
    """
    end, count = time.monotonic() + seconds, _barriers.get(comm.value, 0)
    _barriers[comm.value] = count + 1
    tag, rank, others = count % TAGS, _mpi.rank(comm), range(1, _mpi.size(comm))
    if rank > 0:
        send(torch.zeros(1), 0, tag, comm).wait()
        if not _receive_by(end, 0, tag, comm):
            raise RuntimeError(f"rank {rank} had no answer of rank 0 to monitored_barrier in {seconds} s")
        return
    missing = []
    for other in others:
        if not _receive_by(end, other, tag, comm):
            missing.append(other)
            if not wait_all_ranks:
                break
    if missing:
        raise RuntimeError(f"ranks {missing} did not reach monitored_barrier in {seconds} s")
    for other in others:
        send(torch.zeros(1), other, tag, comm).wait()


def _receive_by(end: float, source: int, tag: int, comm: Any) -> bool:
    """Receive a message before a time; False if none has arrived."""
    while find_message(source, tag, comm) < 0:
        if time.monotonic() > end:
            return False
        time.sleep(SLEEP_SECONDS)
    receive(torch.empty(1), source, tag, comm).wait()
    return True
