# SPDX-License-Identifier: BSD-3-Clause
"""Broadcasts of tensors, objects, parameters and optimizer state from one rank."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any, Iterable, Mapping

import torch

from . import _collectives
from ._agree import agree
from ._allreduce import allreduce
from ._work import Work
from ._collective import collective
from ._compressor import STATE
from ._parameters import compare_parameters
from ._process_set import ranks_of, root_in
from ._sharding import SHARDS
from ._tensors import refuse_other
from ._world import world


def _start(tensor: torch.Tensor, root_rank: int, process_set: Any, later: bool) -> Work:
    ranks, root = ranks_of(process_set), root_in(process_set, root_rank)
    refuse_other(tensor)
    return _collectives.broadcast(tensor, root, ranks, later)


@collective
def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: Any = None
) -> Work:
    """Start to overwrite a tensor with that of one rank. Collective; see broadcast_()."""
    return _start(tensor, root_rank, process_set, later=True)


@collective
def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: Any = None
) -> Work:
    """Start to copy one rank's tensor into a new one. Collective; see broadcast_()."""
    refuse_other(tensor)
    return broadcast_async_(tensor.detach().clone(), root_rank, name, process_set)


@collective
def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: Any = None
) -> torch.Tensor:
    """Overwrite a tensor with that of one rank, and return it. Collective; blocks.

    Args:
        tensor: of the same size and type on all ranks, dense or sparse COO. Sparse ones have the same shape,
            and may have different elements before.
        root_rank: the rank to copy from, by its number among all ranks, also with a process set.
        name: ignored.
        process_set: as for allreduce().

    Raises:
        TypeError: the argument is not a tensor.
        ValueError: root_rank is not a rank, or not in the process set, or sizes, types or roots differ; on
            all ranks.
    """
    return _start(tensor, root_rank, process_set, later=False).wait()


class _Broadcast(torch.autograd.Function):
    """As in Horovod, the gradient of the root's tensor is the mean over ranks; on other ranks it is zero."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, process_set: Any) -> torch.Tensor:
        ctx.root, ctx.process_set = root_rank, process_set
        return broadcast_(tensor.detach().clone(), root_rank, None, process_set)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        reduced = allreduce(gradient, process_set=ctx.process_set)
        return reduced if world().rank == ctx.root else torch.zeros_like(reduced), None, None


@collective
def broadcast(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: Any = None
) -> torch.Tensor:
    """Copy one rank's tensor into a new one. Collective; see broadcast_(). Differentiable: the root's
    gradient is the mean over ranks, so backward() is collective too."""
    refuse_other(tensor)
    return _Broadcast.apply(tensor, root_rank, process_set)


@collective
def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: str | None = None, process_set: Any = None
) -> Any:
    """Copy one rank's object to all ranks. Collective; blocks. On the root it returns the object itself.

    Raises:
        ValueError: the object cannot be pickled, on all ranks.
    """
    ranks, root = ranks_of(process_set), root_in(process_set, root_rank)
    mine = ranks.rank == root
    data, problem = _collectives.pickled(obj) if mine else (b"", "")
    length = int(broadcast_(torch.tensor(-1 if problem else len(data)), root_rank, None, process_set))
    if length < 0:
        raise ValueError(problem or f"rank {root_rank} has an object that cannot be pickled")
    buffer = ctypes.create_string_buffer(data, length)
    _collectives.broadcast_bytes(ctypes.addressof(buffer), length, root, ranks.plain, buffer).wait()
    return obj if mine else pickle.loads(buffer.raw)


def _named(item: Any) -> tuple[str, Any]:
    """A pair of a name and a tensor; a tensor alone has no name."""
    return ("", item) if isinstance(item, torch.Tensor) else item


@collective
def broadcast_parameters(params: Mapping[str, Any] | Iterable[Any], root_rank: int = 0) -> None:
    """Overwrite a model's parameters with those of one rank. Collective; blocks.

    Args:
        params: model.state_dict(), model.named_parameters() or model.parameters(); with the same names, or in
            the same order, on all ranks. Values other than tensors are skipped.
        root_rank: the rank to copy from.

    Raises:
        TypeError: params is none of these.
        ValueError: names, shapes or types differ between ranks, on all ranks.
    """
    if not isinstance(params, Iterable):
        raise TypeError(f"params is {params!r}; it must be model.state_dict() or model.named_parameters()")
    items = params.items() if isinstance(params, Mapping) else map(_named, params)
    named = sorted(items, key=lambda item: item[0])
    tensors = [(name, tensor) for name, tensor in named if isinstance(tensor, torch.Tensor)]
    compare_parameters(tensors)
    for name, tensor in tensors:
        broadcast_(tensor, root_rank, name)


class _Shape:
    """Placeholder of a tensor in a state that is broadcast as an object."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype

    def empty(self) -> torch.Tensor:
        """A new tensor of this shape and type."""
        return torch.empty(self.shape, dtype=self.dtype)


def _replace(value: Any, kind: type, change: Any) -> Any:
    """Copy nested dictionaries, lists and tuples, with change() applied to values of a kind."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {key: _replace(inner, kind, change) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replace(inner, kind, change) for inner in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named tuple
        return value._make(_replace(inner, kind, change) for inner in value)
    return value


def _common(state: dict[str, Any]) -> dict[str, Any]:
    """The state without this rank's velocities and residuals, but with their number of steps."""
    kept = state.get(STATE, {})
    steps = {number: {"step": own["step"]} for number, own in kept.items()}
    return {**state, STATE: steps} if kept else state


def _group_problem(optimizer: torch.optim.Optimizer, theirs: list[dict[str, Any]], root_rank: int) -> str:
    """The difference between this rank's groups of parameters and the root's; empty if there is none."""
    mine, other = ([len(group["params"]) for group in groups] for groups in (optimizer.param_groups, theirs))
    if mine != other:
        return f"the groups of the optimizer have {mine} parameters, and those of rank {root_rank} {other}"
    missing = sorted(set(optimizer.defaults).difference(*theirs))
    return f"the optimizers differ: rank {root_rank}'s has no {', '.join(missing)}" if missing else ""


@collective
def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int = 0, model: Any = None
) -> None:
    """Copy the state of one rank's optimizer to all: buffers, learning rates and so on, except the velocities
    and residuals of Compression.dgc. Collective; blocks.

    Args:
        optimizer: of the same class and with the same parameters on all ranks; may have made no step yet.
        root_rank: the rank to copy from.
        model: Horovod's argument; ignored.

    Raises:
        TypeError: the argument is not an optimizer.
        ValueError: the root has the state of its rows only, with shard_state=True; or the groups of
            parameters differ, or their options; on all ranks.
    """
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(f"an optimizer is needed, not {type(optimizer).__name__}")
    mine = world().rank == root_rank
    state = _common(optimizer.state_dict()) if mine else None
    outline = broadcast_object(_replace(state, torch.Tensor, _Shape), root_rank)
    if SHARDS in outline:
        raise ValueError("the optimizer's state is sharded: no rank has that of all rows")
    agree("broadcast_optimizer_state", _group_problem(optimizer, outline["param_groups"], root_rank), world())
    if mine:
        _replace(state, torch.Tensor, lambda tensor: broadcast_(tensor, root_rank))
    else:
        optimizer.load_state_dict(
            _replace(outline, _Shape, lambda shape: broadcast_(shape.empty(), root_rank))
        )
