# SPDX-License-Identifier: BSD-3-Clause
"""Sharded optimizer state: of a parameter with sparse gradients, each rank has the state of the rows that it
owns. The owner of row r is rank r mod n of n ranks.

The reducer gives each rank the reduced gradients of its rows, by reduce_scatter. The optimizer's own step
updates these rows, on views of the parameters. Then an allgather copies the rows that have changed to all
ranks. All elements of a row have one owner, so the result has the bits of a step on whole state; with a
compression not quite, since sums of whole state are rounded once more.

After synchronize() the gradient of a sharded parameter has the rows of this rank only. From the first step on
the original optimizer, which shares the state, cannot be used. With momentum a step changes every row that
had a gradient in any step, and sends all of them."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import numpy
import torch

from .. import AllgatherCooPlan, Error
from .._coo import DirectElements, Elements
from ._tensors import Adasum, Op, coalesced_of, is_plain, on_host, type_of, view_memory
from ._world import UNCHECKED, World

SHARDS = "mpix_sparse_shards"  # key in an optimizer's state_dict(): rank, ranks and sharded parameters
OPTIMIZERS = torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam


def refuse_sharding(
    shard_state: bool, optimizer: torch.optim.Optimizer, op: Op, sparse_as_dense: bool
) -> None:
    """Raise an exception for an optimizer whose state cannot be sharded, if shard_state is True."""
    if not shard_state:
        return
    if not isinstance(optimizer, OPTIMIZERS):
        names = ", ".join(kind.__name__ for kind in OPTIMIZERS)
        raise TypeError(f"shard_state is for {names}, not for {type(optimizer).__name__}")
    if op is Adasum:
        raise ValueError("shard_state is not for op Adasum, which needs the changes of all rows on each rank")
    if sparse_as_dense:
        raise ValueError("shard_state needs sparse gradients, and sparse_as_dense makes them dense")


def is_sharded(optimizer: Any) -> bool:
    """True if an optimizer has state of the rows of one rank."""
    sharding = optimizer.__dict__.get("_sharding")
    return sharding is not None and bool(sharding.numbers(optimizer))


class Shard:
    """The rows of a parameter that this rank owns. Creation is collective.

    Args:
        slot: the parameter's.
        ranks: the owners.
        takes_empty: True if the optimizer takes sparse gradients without elements. Adagrad and SparseAdam
            raise exceptions in some versions of PyTorch.
    """

    def __init__(self, slot: Any, ranks: World, takes_empty: bool) -> None:
        self._takes_empty = takes_empty
        self.name, self.parameter, self._ranks = slot.name, slot.parameter, ranks
        self._dtype = self.parameter.dtype
        self._type, self._row = type_of(self.parameter), tuple(self.parameter.shape[1:])
        row, comm = self.parameter.shape[1:].numel(), ranks.comm(self._type)
        how = {"comm": comm, "row": row, "hints": UNCHECKED}
        self._plan = AllgatherCooPlan(len(self.parameter), self._type, **how)
        self._result: Any = None
        self._copied: Any = None  # memory in which the optimizer's step is made, and its rows

    def part_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The rows of this rank, a view of a tensor with all rows."""
        return tensor.detach()[self._ranks.rank :: self._ranks.size]

    def cut(self, state: dict[str, Any]) -> None:
        """Replace state of all rows by that of the rows of this rank.

        Raises:
            ValueError: a tensor has another number of rows.
        """
        for key, value in state.items():
            if self._has_rows(value):
                self._refuse_rows(len(value))
                if len(value) == len(self.parameter):
                    state[key] = self._cut_sparse(value) if value.is_sparse else self.part_of(value).clone()

    def _has_rows(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.dim() > 0 and tuple(value.shape[1:]) == self._row

    def _refuse_rows(self, rows: int) -> None:
        own, every = len(self.part_of(self.parameter)), len(self.parameter)
        if rows not in (own, every):
            raise ValueError(f"state of {self.name} has {rows} rows; this rank owns {own} of {every}")

    def _cut_sparse(self, value: torch.Tensor) -> torch.Tensor:
        value = value.coalesce()
        indices = value._indices()[0]
        mine = indices % self._ranks.size == self._ranks.rank
        own, shape = self._to_local(indices[mine]), self.part_of(self.parameter).shape
        return coalesced_of(own.unsqueeze(0), value._values()[mine], value, shape)

    def _to_local(self, indices: torch.Tensor) -> torch.Tensor:
        return torch.div(indices, self._ranks.size, rounding_mode="floor")

    def make_view(self) -> torch.nn.Parameter:
        """The rows of this rank as a parameter, with their gradient.

        Raises:
            ValueError: the gradient is dense, or has rows of other ranks.
        """
        self._copied = None
        view, gradient = torch.nn.Parameter(self.part_of(self.parameter)), self.parameter.grad
        if gradient is None:
            return view
        if not gradient.is_sparse or gradient.sparse_dim() != 1:
            raise ValueError(f"the gradient of {self.name} is dense, and its optimizer state is sharded")
        gradient = gradient.coalesce()
        indices = gradient._indices()
        own = self._to_local(indices)
        if not torch.equal(own * self._ranks.size + self._ranks.rank, indices):
            raise ValueError(f"the gradient of {self.name} has rows of other ranks: it was not reduced")
        if own.numel() and not self._takes_empty and self._ranks.size > 1:
            view = self._make_copy(own[0], indices[0])
        if own.numel() or self._takes_empty:
            view.grad = coalesced_of(own, gradient._values(), view)
        return view

    def _make_copy(self, own: torch.Tensor, indices: torch.Tensor) -> torch.nn.Parameter:
        """The rows of this rank in contiguous memory, to which PyTorch adds in a tenth of the time. Only rows
        with a gradient are copied; an optimizer without momentum uses no others."""
        source = self.parameter.detach()
        copy = source.new_empty(self.part_of(source).shape)
        _write_rows(copy, own, source.index_select(0, indices))
        self._copied = copy, own
        return torch.nn.Parameter(copy)

    def count_step(self, state: dict[str, Any]) -> None:
        """Count a step without gradients of this rank's rows in the state, since other ranks had some."""
        gradient = self.parameter.grad
        if gradient is None or self._takes_empty or gradient._nnz():
            return
        if not state:  # of SparseAdam, which makes it in the first step
            part = self.part_of(self.parameter)
            state.update(step=0, exp_avg=torch.zeros_like(part), exp_avg_sq=torch.zeros_like(part))
        state["step"] += 1

    def changed_rows(self, state: dict[str, Any]) -> torch.Tensor:
        """Indices of the rows that a step has changed. Momentum changes every row that had a gradient in any
        step."""
        gradient = self.parameter.grad
        if gradient is None:
            return torch.empty(0, dtype=torch.int64)
        momentum = state.get("momentum_buffer")
        if momentum is None:
            return on_host(gradient.coalesce()._indices()[0])
        return on_host(momentum.coalesce()._indices()[0]) * self._ranks.size + self._ranks.rank

    def start(self, state: dict[str, Any]) -> Any:
        """Start to send the rows that have changed, and return the call's handle."""
        indices = self.changed_rows(state)
        source, where = self._copied or (self.parameter.detach(), indices.to(self.parameter.device))
        rows, self._copied = on_host(source.index_select(0, where)), None
        where = indices.data_ptr(), rows.data_ptr(), len(indices)
        elements = DirectElements(*where, self._type, self._row, (indices, rows))
        return self._plan.start_elements(elements, self._result)

    def start_failed(self) -> Any:
        """Start a call that fails on all ranks."""
        values = numpy.empty((0, *self._row), "float32")
        elements = Elements(numpy.empty(0, "int64"), values)
        elements.problem = "the step failed"
        return self._plan.start_elements(elements)

    def finish(self, handle: Any) -> Error | None:
        """Wait for the rows of all ranks, and write them to the parameter. Returns the error of the call."""
        try:
            self._result = handle.wait()
        except Error as error:
            return error
        nnz, indices, values = self._result.contents()
        if nnz:
            where = view_memory(indices, (nnz,), torch.int64)
            _write_rows(self.parameter.detach(), where, view_memory(values, (nnz, *self._row), self._dtype))
        return None


def _write_rows(parameter: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor) -> None:
    """Overwrite rows of a parameter. NumPy takes a fifth of the time of index_copy_()."""
    if not is_plain(parameter):
        device = parameter.device
        parameter.index_copy_(0, indices.to(device), rows.to(device))
        return
    if parameter.dtype == torch.bfloat16:
        parameter, rows = parameter.view(torch.int16), rows.view(torch.int16)
    parameter.numpy()[indices.numpy()] = rows.numpy()


class Sharding:
    """The shards of an optimizer's parameters.

    Args:
        reducer: the reducer of the gradients.
    """

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer
        self._shards: list[Shard] = []
        self._loaded: list[int] = []  # numbers of parameters whose state was loaded as that of a shard

    def numbers(self, optimizer: Any) -> list[int]:
        """The numbers of the sharded parameters in the optimizer's state_dict()."""
        sharded = {id(shard.parameter) for shard in self._shards}
        found = [number for number, each in enumerate(_parameters(optimizer)) if id(each) in sharded]
        return sorted({*found, *self._loaded})

    def state(self, optimizer: Any) -> dict[str, Any]:
        """What a state_dict() says about its shards."""
        numbers, ranks = self.numbers(optimizer), self._reducer.ranks
        return {SHARDS: {"rank": ranks.rank, "ranks": ranks.size, "parameters": numbers}} if numbers else {}

    def check(self, found: Any) -> None:
        """Raise ValueError for a state of another rank, or of another number of ranks."""
        ranks = self._reducer.ranks
        theirs, here = (found["rank"], found["ranks"]), (ranks.rank, ranks.size)
        if theirs != here:
            of = "rank {} of {}, and this is rank {} of {}".format(*theirs, *here)
            raise ValueError(f"the state is that of {of}; each rank loads the state_dict() that it saved")

    def load(self, optimizer: Any, found: Any) -> None:
        """Cut a state that has been loaded, where it is of all rows."""
        self._loaded = list(found["parameters"]) if found else []
        for shard in self._shards:
            shard.cut(optimizer.state.get(shard.parameter, {}))

    def step(self, optimizer: Any, step: Callable[[Any], Any], closure: Callable[[], Any] | None) -> Any:
        """Make the optimizer's step on the rows of this rank, and get all rows that have changed. Collective.

        Raises:
            ValueError: the gradient of a sharded parameter is dense or was not reduced.
            Error: the step failed on another rank, or the rows could not be sent.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        try:
            self._add_shards(optimizer)
            with _on_views(optimizer, self._shards):
                result = step(None)
            for shard in self._shards:
                shard.count_step(optimizer.state[shard.parameter])
        except Exception:
            self._fail()
            raise
        self._gather(optimizer)
        return result if closure is None else loss

    def _add_shards(self, optimizer: Any) -> None:
        """Shard the state of parameters that had their first gradient."""
        how = self._reducer.ranks, isinstance(optimizer, torch.optim.SGD)
        new = [Shard(slot, *how) for slot in self._reducer.sharded[len(self._shards) :]]
        self._shards += new
        for shard in new:
            shard.cut(optimizer.state.get(shard.parameter, {}))
        sharded = {id(shard.parameter) for shard in self._shards}
        parameters = list(_parameters(optimizer))
        for number in self._loaded:
            parameter = parameters[number]
            if parameter.grad is not None and id(parameter) not in sharded:
                raise ValueError(f"the gradient of parameter {number} is dense, and its state is sharded")

    def _gather(self, optimizer: Any) -> None:
        if self._reducer.ranks.size == 1:
            return
        with self._reducer.timed():
            handles = [shard.start(optimizer.state.get(shard.parameter, {})) for shard in self._shards]
            failed = [shard.finish(handle) for shard, handle in zip(self._shards, handles)]
        for error in filter(None, failed):
            raise Error(f"the step failed on a rank, or its rows could not be sent: {error}", error.code)

    def _fail(self) -> None:
        """Take part in the calls of the other ranks, which then fail there too."""
        if self._reducer.ranks.size > 1:
            for handle in [shard.start_failed() for shard in self._shards]:
                with contextlib.suppress(Error, ValueError):
                    handle.wait()


def _parameters(optimizer: Any) -> Iterator[torch.nn.Parameter]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


@contextlib.contextmanager
def _on_views(optimizer: Any, shards: list[Shard]) -> Iterator[None]:
    """A block in which the optimizer has the rows of this rank in place of the sharded parameters."""
    views = {id(shard.parameter): shard.make_view() for shard in shards}
    pairs = [(shard.parameter, views[id(shard.parameter)]) for shard in shards]
    lists = [group["params"] for group in optimizer.param_groups]
    try:
        for group in optimizer.param_groups:
            group["params"] = [views.get(id(each), each) for each in group["params"]]
        _move_state(optimizer.state, pairs)
        yield
    finally:
        _move_state(optimizer.state, [(view, parameter) for parameter, view in pairs])
        for group, listed in zip(optimizer.param_groups, lists):
            group["params"] = listed


def _move_state(state: Any, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Move the state of each first tensor to the second one."""
    for source, target in pairs:
        if source in state:
            state[target] = state.pop(source)
