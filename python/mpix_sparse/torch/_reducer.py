# SPDX-License-Identifier: BSD-3-Clause
"""Reduces a model's gradients while the rest of the backward pass goes on.

Ranks must make their calls in one order, and gradients may come in another on each: so parameters stand in a
fixed order, last ones first as backward passes produce them, and each is started once it and all before it
are ready. Which gradients are sparse is agreed on when they are first seen, for a rank may have none of a
parameter. Every sparse one has a plan. Dense neighbours share one, and a buffer whose pieces are their
gradients afterwards: one call costs less than several."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import zlib
from typing import Any, Iterator, Sequence

import numpy
import torch

from .. import CooPlan, Plan
from .. import allreduce as allreduce_array
from ._compression import Compressor
from ._gather import allgather_object
from ._join import announce, ask, enter
from ._tensors import (
    Op,
    as_array,
    coordinates,
    laid_out_as,
    refuse_average,
    scale_,
    sparse_like,
    sparse_of,
    sparse_view,
    strides_of,
    type_of,
)
from ._world import world

UNSEEN, SPARSE, DENSE, TOPK = range(4)
GROUP_BYTES = 4 << 20  # of dense parameters that travel together


class Slot:
    """A parameter. Of a group the first one holds the plan."""

    def __init__(self, name: str, parameter: torch.nn.Parameter, sparsifier: Any, lent: bool) -> None:
        self.name, self.parameter, self.sparsifier = name, parameter, sparsifier
        self._lent = lent
        self.kind = UNSEEN
        self.passes = 0
        self.ready = False
        self.handle: Any = None
        self.plan: Any = None
        self.buffer: Any = None
        self._result: Any = None

    @property
    def lent(self) -> bool:
        """Whether its sparse gradient stays in the result's memory."""
        return self._lent and not self.parameter.is_cuda

    def __str__(self) -> str:
        parameter = self.parameter
        layout = "" if parameter.is_contiguous() else f" with strides {strides_of(parameter)}"
        return f"{self.name}, {type_of(parameter)} of {tuple(parameter.shape)}{layout}"

    def seen(self) -> int:
        """The kind of the gradient that is there now."""
        gradient = self.parameter.grad
        return UNSEEN if gradient is None else SPARSE if gradient.is_sparse else DENSE

    def settle(self, kind: int) -> None:
        """Take note of what kind of gradient it has on all ranks."""
        topk = kind == DENSE and self.sparsifier is not None and not self.sparsifier.whole
        self.kind = TOPK if topk else kind

    def open(self, op: Op, hints: dict[str, str]) -> None:
        """Make the plan of a gradient that travels by itself as coordinates. Collective."""
        if self.kind == TOPK:
            self.sparsifier.open(op)
            return
        name = type_of(self.parameter)
        rows, row = self.parameter.shape[0], self.parameter.shape[1:].numel()
        self.plan = CooPlan(rows, name, op.reduction, comm=world().comm(name), row=row, hints=hints)

    def fill(self, prescale: float) -> None:
        """Put the gradient into the buffer, if it is not there already."""
        gradient = self.parameter.grad
        if gradient is None:
            self.buffer.zero_()
        elif gradient.is_sparse or gradient.data_ptr() != self.buffer.data_ptr():
            self.buffer.copy_((gradient.to_dense() if gradient.is_sparse else gradient).detach())
        scale_(self.buffer, prescale)

    def start_sparse(self, prescale: float) -> None:
        """Start the plan of a sparse gradient: its rows, whatever they are on this rank."""
        gradient = self._rows()
        indices, values = coordinates(gradient)
        if prescale != 1:
            values = scale_(values.clone(), prescale)
        spent = self._result if self._result is not None and not self._result.is_lent else None
        self.handle = self.plan.start(as_array(indices), as_array(values), reuse=spent)

    def _rows(self) -> torch.Tensor:
        gradient = self.parameter.grad
        if gradient is None:
            values = torch.empty(0, *self.parameter.shape[1:], dtype=self.parameter.dtype)
            return sparse_of(torch.empty(1, 0, dtype=torch.int64), values, self.parameter)
        if gradient.is_sparse and gradient.sparse_dim() == 1:
            return gradient.detach()
        return gradient.detach().to_dense().to_sparse(1)

    def finish(self, postscale: float, divisor: int) -> None:
        """Wait, and make the outcome the parameter's gradient."""
        outcome, self.handle = self.handle.wait(), None
        if self.kind == TOPK:
            gradient = self.sparsifier.finish(outcome, postscale, divisor)
            self._hand_out(laid_out_as(gradient, self.parameter))
        elif self.kind == DENSE:
            scale_(self.buffer, postscale, divisor)
            gradient = self.buffer.to(self.parameter.device, self.parameter.dtype)
            if self.sparsifier is not None:
                self.sparsifier.correct_(gradient)
            self._hand_out(gradient)
        elif self.lent:
            self._result = outcome
            self.parameter.grad = sparse_view(self.parameter.detach(), outcome)
        else:
            self._result = outcome
            self.parameter.grad = sparse_like(self.parameter.detach(), 1, outcome, divisor, postscale)
        self.ready, self.passes = False, 0

    def _hand_out(self, gradient: torch.Tensor) -> None:
        """Make the parameter's gradient of it: another tensor on its memory, since Module.to() changes that
        tensor."""
        self.parameter.grad = gradient.detach()


class Reducer:
    """Reduces the gradients of parameters: ready() as each comes, synchronize() at the end of a step.

    Args:
        compression: how floats travel.
        op: Average or another.
        passes: backward passes in a step.
        scales: factors before and after.
        sparse_as_dense: whether sparse gradients become dense ones.
        sparse_views: whether sparse gradients stay in the library's memory.
    """

    def __init__(
        self,
        compression: Compressor,
        op: Op,
        passes: int,
        scales: tuple[float, float],
        sparse_as_dense: bool,
        sparse_views: bool,
    ) -> None:
        self._slots: list[Slot] = []
        self._of: dict[int, Slot] = {}
        self._compression, self._sparse_views = compression, sparse_views
        self._hints = {} if compression.dtype is None else {"wire_values": compression.wire_values}
        self._op, self._passes, self._scales = op, passes, scales
        self._sparse_as_dense = sparse_as_dense
        self._groups: list[list[Slot]] = []
        self._compared = 0  # slots that are known to be the other ranks' too
        self._started = 0  # groups of this step
        self._lock = threading.Lock()  # PyTorch has a thread of backward passes for each device
        self._synchronized = False  # since the last step, on all ranks
        self._new = False  # whether there may be gradients here that synchronize() has not seen
        self.seconds = 0.0  # spent in ready() and synchronize()
        self._number = enter(self)

    def add(self, named_parameters: Sequence[tuple[str, torch.nn.Parameter]]) -> None:
        """Take on parameters, with names, in the same order on all ranks."""
        numbered = list(enumerate(named_parameters, len(self._slots)))
        for number, (name, parameter) in reversed(numbered):
            sparsifier = self._compression.sparsifier(parameter, number)
            slot = Slot(name, parameter, sparsifier, self._sparse_views)
            self._slots.append(slot)
            self._of[id(parameter)] = slot

    def state(self) -> dict[int, Any]:
        """What this rank keeps of gradients from step to step, by numbers of parameters."""
        return {sparsifier.number: sparsifier.state() for sparsifier in self._sparsifiers()}

    def _sparsifiers(self) -> list[Any]:
        return [slot.sparsifier for slot in self._slots if slot.sparsifier is not None]

    def check(self, states: Any) -> None:
        """Raise ValueError where states are of other parameters, or none."""
        if not isinstance(states, dict) or not all(isinstance(number, int) for number in states):
            raise ValueError("what is to be loaded of gradients must be a dict with numbers of parameters")
        for sparsifier in self._sparsifiers():
            if sparsifier.number in states:
                sparsifier.check(states[sparsifier.number])

    def load(self, states: dict[int, Any]) -> None:
        """Go on from states that check() has let pass."""
        for sparsifier in self._sparsifiers():
            if sparsifier.number in states:
                sparsifier.load(states[sparsifier.number])

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin

    @property
    def busy(self) -> bool:
        """Whether gradients are on their way."""
        return self._started > 0

    def ready(self, parameter: torch.nn.Parameter) -> None:
        """A parameter's gradient has come, in one of the step's backward passes. Any thread may say so.

        Raises:
            RuntimeError: there were more of these than the step has.
        """
        slot = self._of[id(parameter)]
        slot.passes += 1
        self.renew()
        if slot.passes > self._passes:
            raise RuntimeError(
                f"the gradient of {slot.name} came {slot.passes} times in a step of {self._passes}; "
                "call step() or synchronize() after backward(), or set backward_passes_per_step"
            )
        slot.ready = slot.passes == self._passes
        with self._lock, self._timed():
            self._start_ready()
            self._move()

    def _move(self) -> None:
        """Let the library work: between calls of it nothing moves."""
        if self.busy:
            self._groups[self._started - 1][0].handle.done()

    def _start_ready(self) -> None:
        while self._started < len(self._groups) and all(slot.ready for slot in self._groups[self._started]):
            self._start(self._groups[self._started])
            self._started += 1

    def _sparse_factor(self, slot: Slot) -> float:
        """What rows are multiplied by on their way in: everything, where nobody may write to the outcome."""
        before, after = self._scales
        return before * after / self._op.divisor(world().size) if slot.lent else before

    def _start(self, group: list[Slot]) -> None:
        if group[0].kind == SPARSE:
            group[0].start_sparse(self._sparse_factor(group[0]))
            return
        if group[0].kind == TOPK:
            group[0].handle = group[0].sparsifier.start(group[0].parameter.grad, self._scales[0])
            return
        for slot in group:
            slot.fill(self._scales[0])
        handle = group[0].plan.start()
        for slot in group:
            slot.handle = handle

    def synchronize(self) -> None:
        """Wait until every parameter has its reduced gradient. Collective.

        A parameter without a gradient on this rank counts as zeros; without one on any rank it stays without.
        """
        with self._timed():
            step = announce(self._number)
            self._reduce(step)
            step.wait()
        self._synchronized, self._new = True, False

    def synchronize_new(self) -> None:
        """Do so unless it was done in this step, and no rank has had other gradients since. Collective."""
        if not self._synchronized:
            self.synchronize()
            return
        with self._timed():
            if ask(self._number, self._new):
                self._reduce()

    def renew(self) -> None:
        """Take note that gradients are no longer what synchronize() has left."""
        self._new = True

    def stepped(self) -> None:
        """Take note of the end of a step. Collective, in that all ranks make it."""
        self._synchronized = False

    def stand_in(self) -> None:
        """Take part in the other ranks' step; this one has no gradients, nor keeps what comes of theirs.

        Raises:
            RuntimeError: it has, and they are on their way.
        """
        if self.busy:
            raise RuntimeError("join() between backward() and step() or synchronize()")
        for slot in self._slots:
            slot.parameter.grad = None
        self._reduce()
        for slot in self._slots:
            slot.parameter.grad = None

    def _reduce(self, step: Any = None) -> None:
        for slot in self._slots:
            slot.ready = True
        self._start_ready()
        self._agree(step)
        self._start_ready()
        for group in self._groups:
            for slot in group:
                slot.finish(self._scales[1], self._op.divisor(world().size))
        for slot in self._slots:
            slot.ready, slot.passes = False, 0
        self._started = 0

    def _agree(self, step: Any) -> None:
        """What kind of gradient those parameters have that had none so far. Dense on any rank is dense on
        all. Ends the word of a step: ranks in an agreement do not move calls that are MPI's own."""
        unseen = [slot for slot in self._slots if slot.kind == UNSEEN]
        if not unseen:
            return
        if step is not None:
            step.wait()
        self._compare()
        kinds = numpy.array([slot.seen() for slot in unseen], numpy.int32)
        allreduce_array(kinds, "max", comm=world().plain, out=kinds)
        if self._sparse_as_dense:
            kinds[kinds == SPARSE] = DENSE
        for slot, kind in zip(unseen, kinds):
            slot.settle(int(kind))
        for group in _group([slot for slot in unseen if slot.kind != UNSEEN]):
            refuse_average(group[0].parameter, self._op)
            if group[0].kind == DENSE:
                _open_dense(group, self._op, self._hints)
            else:
                group[0].open(self._op, self._hints)
            self._groups.append(group)

    def _compare(self) -> None:
        """See to it that parameters that are new here are so, in the same order, on all ranks.

        Raises:
            ValueError: they are not. All ranks learn of it.
        """
        new = [str(slot) for slot in reversed(self._slots[self._compared :])]
        if not new:
            return
        mark = zlib.crc32("\n".join(new).encode())
        extremes = numpy.array([mark, -mark])
        allreduce_array(extremes, "max", comm=world().plain, out=extremes)
        if extremes[0] != -extremes[1]:
            _tell_apart(new)
        self._compared = len(self._slots)


def _tell_apart(mine: list[str]) -> None:
    """Raise ValueError for parameters that are not those of all ranks. Collective."""
    for rank, theirs in enumerate(allgather_object(mine)):
        for here, there in itertools.zip_longest(mine, theirs, fillvalue="none"):
            if here != there:
                raise ValueError(f"a parameter of the optimizer is {here} here, and {there} on rank {rank}")


def _open_dense(group: list[Slot], op: Op, hints: dict[str, str]) -> None:
    """Make the plan of dense gradients, and their buffer. Collective."""
    dtype = group[0].parameter.dtype
    sizes = [slot.parameter.numel() for slot in group]
    buffer = torch.zeros(sum(sizes), dtype=dtype)
    for slot, piece in zip(group, buffer.split(sizes)):
        slot.buffer = piece.as_strided(slot.parameter.shape, strides_of(slot.parameter))
    comm = world().comm(type_of(buffer))
    group[0].plan = Plan(buffer, op.reduction, comm=comm, out=buffer, hints=hints)


def _group(slots: list[Slot]) -> list[list[Slot]]:
    """Neighbours that are dense and of one type, up to a size, in one group; each sparse one by itself."""
    groups: list[list[Slot]] = []
    room = 0
    for slot in slots:
        bytes_here = slot.parameter.numel() * slot.parameter.element_size()
        last = groups[-1][-1] if groups else None
        joins = (
            last is not None
            and last.kind == slot.kind == DENSE
            and last.parameter.dtype == slot.parameter.dtype
        )
        if joins and bytes_here <= room:
            groups[-1].append(slot)
            room -= bytes_here
        else:
            groups.append([slot])
            room = GROUP_BYTES - bytes_here
    return groups
