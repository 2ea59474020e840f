# SPDX-License-Identifier: BSD-3-Clause
"""Training that goes on after an error, with Horovod's interface: states that are committed and restored in
memory, and run(), which restores the last commit and calls the training function again.

The ranks stay the same: MPI cannot replace a rank that has ended, nor add one. So run() goes on only after an
error that all ranks got, with all ranks alive. Otherwise it raises Error, and the program ends."""

from __future__ import annotations

import copy
import ctypes
import functools
import math
import random
import time
from typing import Any, Callable, Iterator, Sequence

import torch

from .. import _mpi, _pending
from .._error import Error
from .._library import library
from .._pending import PendingCall
from ._broadcast import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from ._sharding import is_sharded
from ._world import World, rank, size, subset_of, world

__all__ = [
    "ElasticSampler",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "ObjectState",
    "State",
    "TorchState",
    "run",
]

TIMEOUT_SECONDS = 60.0  # that run() waits for the other ranks after an error
MAX_RETRIES = 3  # without a commit in between
RESTORE, RESET = 1, 2  # what a rank does after an exception

HorovodInternalError = Error


class HostsUpdatedInterrupt(RuntimeError):
    """The set of hosts has changed. This package never raises it; if all ranks raise it, run() calls the
    function again without a restore.

    Args:
        skip_sync: True if states need not be copied from rank 0.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the set of hosts has changed")
        self.skip_sync = skip_sync


class State:
    """What run() commits and restores. Derived classes define save(), restore() and sync().

    Args:
        bcast_object: broadcasts an object from rank 0.
        get_rank: returns this process's rank.
    """

    def __init__(self, bcast_object: Any = broadcast_object, get_rank: Any = rank) -> None:
        self._bcast_object, self._rank = bcast_object, get_rank
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._commits = 0

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], Any]]) -> None:
        """Add functions that run() calls before it calls the training function again."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called by run() before it calls the training function again."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Save the state in memory. Not collective, but all ranks commit at the same points."""
        self.save()
        self._commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Do nothing: the ranks of an MPI program do not change."""

    def save(self) -> None:
        """Save the state in memory."""
        raise NotImplementedError(f"{type(self).__name__} has no save()")

    def restore(self) -> None:
        """Return to the saved state."""
        raise NotImplementedError(f"{type(self).__name__} has no restore()")

    def sync(self) -> None:
        """Copy rank 0's state to all ranks, and save it. Collective."""
        raise NotImplementedError(f"{type(self).__name__} has no sync()")

    def reset(self) -> None:
        """Called after restore(), before sync()."""


class ObjectState(State):
    """A state of Python objects, each an attribute. As in Horovod, save() keeps references: replace an object
    to change it.

    Args:
        bcast_object, get_rank: as for State.
        kwargs: the attributes.
    """

    def __init__(self, bcast_object: Any = broadcast_object, get_rank: Any = rank, **kwargs: Any) -> None:
        self._saved = kwargs
        self._set_attributes()
        super().__init__(bcast_object, get_rank)

    def save(self) -> None:
        """Keep the attributes."""
        self._saved = {name: getattr(self, name) for name in self._saved}

    def restore(self) -> None:
        """Set the attributes to those that were kept."""
        self._set_attributes()

    def sync(self) -> None:
        """Set the attributes to those that rank 0 kept. Collective."""
        if self._saved:
            self._saved = self._bcast_object(self._saved)
            self._set_attributes()

    def _set_attributes(self) -> None:
        for name, value in self._saved.items():
            setattr(self, name, value)


class _Kept:
    """A model, optimizer or sampler in a TorchState, with a copy of its state_dict()."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        if hasattr(self.value, "_reducer"):
            self.value._reducer.reset()
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        if isinstance(self.value, torch.nn.Module):
            broadcast_parameters(self.value.state_dict(), root_rank=0)
        elif is_sharded(self.value):
            pass  # each rank has its own state
        elif isinstance(self.value, torch.optim.Optimizer):
            broadcast_optimizer_state(self.value, root_rank=0)
        else:
            self.value.load_state_dict(broadcast_object(self.value.state_dict()))
        self.save()


class TorchState(ObjectState):
    """A state of models, optimizers, samplers and other objects, each an attribute.

    Args:
        model: a torch.nn.Module, or None.
        optimizer: an optimizer, or None.
        kwargs: more models, optimizers and ElasticSamplers, and objects as for ObjectState.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        kinds = torch.nn.Module, torch.optim.Optimizer, ElasticSampler
        everything = {"model": model, "optimizer": optimizer, **kwargs}
        kept = {name: _Kept(value) for name, value in everything.items() if isinstance(value, kinds)}
        self.__dict__["_kept"] = kept
        for name, each in kept.items():
            self.__dict__[name] = each.value
        super().__init__(**{name: value for name, value in everything.items() if name not in kept})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._kept:
            self._kept[name] = _Kept(value)
        super().__setattr__(name, value)

    def save(self) -> None:
        """Copy the states of models, optimizers and samplers, and keep the other attributes."""
        for each in self._kept.values():
            each.save()
        super().save()

    def restore(self) -> None:
        """Load the copies. A step of a DistributedOptimizer that had begun is given up."""
        for each in self._kept.values():
            each.restore()
        super().restore()

    def sync(self) -> None:
        """Copy rank 0's models, optimizers and so on to all ranks, and save them. Collective."""
        for each in self._kept.values():
            each.sync()
        super().sync()


class ElasticSampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
    """Draws the samples of a data set that are left in an epoch, each on one rank.

    Call record_batch() after each batch, and set_epoch() at the end of each epoch. In a TorchState it goes
    on, after a restore, with the samples that were left at the last commit.

    Args:
        dataset: a data set of constant size.
        shuffle: True to shuffle samples in each epoch.
        seed: the seed of the shuffle; the same on all ranks.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch with all samples."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Record that each rank has processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        """The epoch and the number of samples that all ranks have processed in it."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Go on from a state."""
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Share the samples that are left among the ranks."""
        self.num_replicas, self.rank = size(), rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        """This rank's samples. Some are drawn twice if ranks could not share them equally."""
        left = self.remaining_indices
        padded = [left[i % len(left)] for i in range(self.total_size)]
        return iter(padded[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples


def _give_up(reason: str) -> Error:
    return Error(
        f"elastic.run cannot go on: {reason}. It restores only after an error that all ranks got, and MPI "
        "cannot replace a rank that has ended"
    )


def _wait(done: Callable[[], bool], what: str) -> None:
    """Wait until done() is true.

    Raises:
        Error: it is not true in time.
    """
    end = time.monotonic() + TIMEOUT_SECONDS
    while not done():
        if time.monotonic() > end:
            raise _give_up(f"{what} within {TIMEOUT_SECONDS:g} seconds")
        time.sleep(0)


def _agree(action: int, ranks: World) -> None:
    """Check that all ranks do the same after an exception. Collective over communicators that the training
    function does not use, so that it cannot match a call that a rank is still in.

    Raises:
        Error: a rank does something else, or nothing in time.
    """
    extremes = (ctypes.c_longlong * 2)(action, -action)
    pending = PendingCall(extremes, lambda: None)
    how = ctypes.c_int(2), _mpi.constant("INT64_T"), _mpi.constant("MAX"), ranks.plain
    handle = pending.begin(
        library.MPI_Iallreduce(_mpi.IN_PLACE, extremes, *how, ctypes.byref(pending.request))
    )
    _wait(handle.done, "another rank did not get here")
    handle.wait()
    if extremes[0] != -extremes[1]:
        raise _give_up("ranks got different exceptions")


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a training function, whose first argument is a State, so that it goes on after errors.

    The function starts with rank 0's state on all ranks. If it raises Error (HorovodInternalError) on all
    ranks, the state returns to the last commit(), and the function is called again, up to 3 times without a
    commit in between. HostsUpdatedInterrupt on all ranks calls it again without the restore. Other exceptions
    are not caught: they end the program on all ranks.

    Collective over all ranks; the function makes the calls of the training.

    Raises:
        Error: another rank did not get the error within 60 seconds (elastic.TIMEOUT_SECONDS), as if it has
            ended; or the error came again.
    """

    @functools.wraps(func)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> Any:
        ranks = subset_of(range(world().size))
        retries, commits, synced = 0, -1, False
        while True:
            try:
                if not synced:
                    state.sync()
                result = func(state, *args, **kwargs)
                ranks.free()
                return result
            except HostsUpdatedInterrupt as interrupt:
                _agree(RESET, ranks)
                synced = interrupt.skip_sync
            except Error:
                retries = retries + 1 if commits == state._commits else 1
                commits, synced = state._commits, False
                if retries > MAX_RETRIES:
                    raise
                _agree(RESTORE, ranks)
                _wait(lambda: not _pending.in_flight(), "calls in flight did not end")
                state.restore()
            state.on_reset()

    return wrapper
