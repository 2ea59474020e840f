# SPDX-License-Identifier: BSD-3-Clause
"""States that elastic.run() commits and restores in memory."""

from __future__ import annotations

import copy
from typing import Any, Callable, Sequence

import torch

from .._broadcast import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .._sharding import is_sharded
from .._world import rank
from .sampler import ElasticSampler


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
        """Set the attributes to those of rank 0, and keep them. Collective."""
        if self._saved:
            ObjectState.save(self)
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
