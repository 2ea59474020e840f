# SPDX-License-Identifier: BSD-3-Clause
"""Reduces a model's gradients during the backward pass.

All ranks must make calls in one order, but gradients may become ready in another order on each rank. So
parameters have a fixed order, the last one first as backward passes produce them, and a reduction starts when
its parameter and all before it are ready. A rank may have no gradient for a parameter, so ranks agree on the
kind of each gradient (sparse or dense) when it first appears. Every sparse gradient has a plan. Neighbouring
dense gradients share a plan and a buffer, since one call costs less than several."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import zlib
from typing import Any, Iterator, Sequence

import numpy
import torch

from .. import CooPlan, Plan, ReduceScatterCooPlan
from .. import allreduce as allreduce_array
from .._coo import Elements
from ._agree import agree
from ._compression import Compression, Compressor
from ._gather import allgather_object
from ._join import start_step, any_rank_has_new, register
from ._process_set import ProcessSet, global_process_set, set_of
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
from ._world import UNCHECKED, World

UNKNOWN, SPARSE, DENSE, TOPK = range(4)
NO_JOIN = "a rank in join() cannot update its rows; shard_state=True has no join()"
GROUP_BYTES = 4 << 20  # limit for dense parameters that share a plan


class ParameterSlot:
    """A parameter and the state of its gradient. The first slot of a group has the plan."""

    def __init__(
        self,
        name: str,
        parameter: torch.nn.Parameter,
        compression: Compressor,
        number: int,
        is_view: bool,
        is_sharded: bool,
    ) -> None:
        self.name, self.parameter, self.compression = name, parameter, compression
        self.sparsifier = compression.sparsifier(parameter, number)
        self._sparse_view = is_view
        self.kind = UNKNOWN
        self.passes = 0
        self.ready = False
        self.is_sharded = is_sharded
        self.problem = ""  # an error of this rank; the next call fails on all ranks
        self.handle: Any = None
        self.plan: Any = None
        self.buffer: Any = None
        self._result: Any = None

    @property
    def is_view(self) -> bool:
        """True if the sparse gradient stays in the result's memory."""
        return self._sparse_view and not self.parameter.is_cuda

    def __str__(self) -> str:
        parameter = self.parameter
        layout = "" if parameter.is_contiguous() else f" with strides {strides_of(parameter)}"
        return f"{self.name}, {type_of(parameter)} of {tuple(parameter.shape)}{layout}"

    def gradient_kind(self) -> int:
        """The kind of the present gradient."""
        gradient = self.parameter.grad
        return UNKNOWN if gradient is None else SPARSE if gradient.is_sparse else DENSE

    def set_kind(self, kind: int) -> None:
        """Set the kind that the ranks agreed on."""
        topk = kind == DENSE and self.sparsifier is not None and not self.sparsifier.travels_dense
        self.kind = TOPK if topk else kind

    def open(self, op: Op, hints: dict[str, str], ranks: World) -> None:
        """Create the plan of a gradient that is sent as coordinates. Collective."""
        if self.kind == TOPK:
            self.sparsifier.open(op)
            return
        name = type_of(self.parameter)
        rows, row = self.parameter.shape[0], self.parameter.shape[1:].numel()
        how = {"comm": ranks.comm(name), "row": row, "hints": {**hints, **UNCHECKED}}
        if self.is_sharded:
            self.plan = ReduceScatterCooPlan(rows, 1, name, op.reduction, **how)
        else:
            self.plan = CooPlan(rows, name, op.reduction, **how)

    def fill(self, prescale: float) -> None:
        """Copy the gradient to the buffer, unless it is there, and round it."""
        gradient = self.parameter.grad
        if gradient is None:
            self.buffer.zero_()
        elif gradient.is_sparse or gradient.data_ptr() != self.buffer.data_ptr():
            self.buffer.copy_((gradient.to_dense() if gradient.is_sparse else gradient).detach())
        scale_(self.buffer, prescale)
        self.compression.round_(self.buffer)

    def start_sparse(self, prescale: float) -> None:
        """Start the plan of a sparse gradient with this rank's rows."""
        gradient = self._rows()
        indices, values = coordinates(gradient)
        if prescale != 1:
            values = scale_(values.clone(), prescale)
        values = self.compression.round(values)
        reusable = self._result if self._result is not None and not self._result.is_viewed else None
        elements = Elements(as_array(indices), as_array(values))
        elements.problem, self.problem = self.problem, ""
        self.handle = self.plan.start_elements(elements, reusable)

    def _rows(self) -> torch.Tensor:
        gradient = self.parameter.grad
        if self.is_sharded and gradient is not None and not gradient.is_sparse:
            self.problem = f"the gradient of {self.name} is dense, and its optimizer state is sharded"
            gradient = None
        if gradient is None:
            values = torch.empty(0, *self.parameter.shape[1:], dtype=self.parameter.dtype)
            return sparse_of(torch.empty(1, 0, dtype=torch.int64), values, self.parameter)
        if gradient.is_sparse and gradient.sparse_dim() == 1:
            return gradient.detach()
        return gradient.detach().to_dense().to_sparse(1)

    def finish(self, postscale: float, divisor: int) -> None:
        """Wait for the reduction, and set the parameter's gradient to the result."""
        result, self.handle = self.handle.wait(), None
        if self.kind == TOPK:
            gradient = self.sparsifier.finish(result, postscale, divisor)
            self._set_gradient(laid_out_as(gradient, self.parameter))
        elif self.kind == DENSE:
            self.compression.round_(self.buffer)
            reduced = self.buffer.to(self.parameter.dtype)  # the buffer itself if it has the type
            gradient = scale_(reduced, postscale, divisor).to(self.parameter.device)
            if self.sparsifier is not None:
                self.sparsifier.correct_(gradient)
            self._set_gradient(gradient)
        elif self.is_view:
            self._result = result
            self.parameter.grad = sparse_view(self.parameter.detach(), result)
        else:
            self._result = result
            self.parameter.grad = sparse_like(self.parameter.detach(), 1, result, divisor, postscale)
        self.ready, self.passes = False, 0

    def _set_gradient(self, gradient: torch.Tensor) -> None:
        # A new tensor on the same memory, since Module.to() changes the tensor object.
        self.parameter.grad = gradient.detach()


class Reducer:
    """Reduces the gradients of parameters: ready() for each gradient, synchronize() at the end of a step.

    Args:
        compression: the compression of gradients.
        op: the reduction.
        passes: backward passes per step.
        scales: factors before and after the reduction.
        sparse_as_dense: True to make sparse gradients dense.
        sparse_views: True to leave sparse gradients in the library's memory.
        process_set: the ranks that reduce; None for all.
        sharded: the optimizer's name if sparse gradients are for their owners only; else empty.

    Attributes:
        shards: the argument sharded.
        sharded: slots of gradients that are for their owners only.
    """

    def __init__(
        self,
        compression: Compressor,
        op: Op,
        passes: int,
        scales: tuple[float, float],
        sparse_as_dense: bool,
        sparse_views: bool,
        process_set: Any = None,
        sharded: str = "",
    ) -> None:
        self.shards, self.sharded = sharded, []
        self._slots: list[ParameterSlot] = []
        self._slot_of: dict[int, ParameterSlot] = {}
        self._compression, self._sparse_views = compression, sparse_views
        self._op, self._passes, self._scales = op, passes, scales
        self._sparse_as_dense = sparse_as_dense
        self._groups: list[list[ParameterSlot]] = []
        self._compared = 0  # slots that have been compared with other ranks
        self._started = 0  # groups started in this step
        self._lock = threading.Lock()  # PyTorch runs backward passes in a thread per device
        self._synchronized = False  # synchronize() was called since the last step; the same on all ranks
        self._new = False  # this rank may have gradients that synchronize() has not reduced
        self.seconds = 0.0  # spent in ready() and synchronize()
        self._process_set = set_of(process_set)
        is_of_all = self._process_set is global_process_set
        self._number = register(self, () if is_of_all else tuple(self._process_set.ranks))

    @property
    def ranks(self) -> World:
        """The ranks that reduce."""
        return self._process_set.members()

    def add(self, named_parameters: Sequence[tuple[str, torch.nn.Parameter]]) -> None:
        """Add parameters with names, in the same order on all ranks."""
        numbered = list(enumerate(named_parameters, len(self._slots)))
        for number, (name, parameter) in reversed(numbered):
            how = self._compression, number, self._sparse_views, bool(self.shards)
            slot = ParameterSlot(name, parameter, *how)
            self._slots.append(slot)
            self._slot_of[id(parameter)] = slot

    def state(self) -> dict[int, Any]:
        """The states of this rank's sparsifiers, by numbers of parameters."""
        return {sparsifier.number: sparsifier.state() for sparsifier in self._sparsifiers()}

    def _sparsifiers(self) -> list[Any]:
        return [slot.sparsifier for slot in self._slots if slot.sparsifier is not None]

    def check(self, states: Any) -> None:
        """Raise ValueError for states that are malformed or belong to other parameters."""
        if not isinstance(states, dict) or not all(isinstance(number, int) for number in states):
            raise ValueError("what is to be loaded of gradients must be a dict with numbers of parameters")
        for sparsifier in self._sparsifiers():
            if sparsifier.number in states:
                sparsifier.check(states[sparsifier.number])

    def load(self, states: dict[int, Any]) -> None:
        """Restore states that check() has accepted."""
        for sparsifier in self._sparsifiers():
            if sparsifier.number in states:
                sparsifier.load(states[sparsifier.number])

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """A block whose time counts as communication."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin

    @property
    def busy(self) -> bool:
        """True while gradients are in flight."""
        return self._started > 0

    def ready(self, parameter: torch.nn.Parameter) -> None:
        """A backward pass has produced a parameter's gradient. Called in any thread.

        Raises:
            RuntimeError: more passes than a step has.
        """
        slot = self._slot_of[id(parameter)]
        slot.passes += 1
        self.mark_new()
        if slot.passes > self._passes:
            raise RuntimeError(
                f"the gradient of {slot.name} came {slot.passes} times in a step of {self._passes}; "
                "call step() or synchronize() after backward(), or set backward_passes_per_step"
            )
        slot.ready = slot.passes == self._passes
        with self._lock, self.timed():
            self._start_ready()
            self._progress()

    def _progress(self) -> None:
        """Make progress on calls in flight, which make none outside the library's functions."""
        if self.busy:
            self._groups[self._started - 1][0].handle.done()

    def _start_ready(self) -> None:
        while self._started < len(self._groups) and all(slot.ready for slot in self._groups[self._started]):
            self._start(self._groups[self._started])
            self._started += 1

    def _sparse_factor(self, slot: ParameterSlot) -> float:
        """The factor of rows before the reduction: all factors for a view, which cannot be scaled later."""
        before, after = self._scales
        return before * after / self._op.divisor(self.ranks.size) if slot.is_view else before

    def _start(self, group: list[ParameterSlot]) -> None:
        buffer = group[0].parameter if group[0].buffer is None else group[0].buffer
        self.ranks.last = self.ranks.comm(type_of(buffer))
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

        A parameter without a gradient on this rank counts as zeros. If no rank has a gradient, it gets none.
        """
        with self.timed():
            step = start_step(self._number, self.ranks)
            try:
                self._reduce(step)
            except Exception:
                step.wait()  # all ranks have started it
                raise
            step.wait()
        self._synchronized, self._new = True, False

    def synchronize_new(self) -> None:
        """synchronize(), unless that was called in this step and no rank has new gradients. Collective."""
        if not self._synchronized:
            self.synchronize()
            return
        with self.timed():
            if any_rank_has_new(self._number, self._new, self.ranks):
                self._reduce()

    def mark_new(self) -> None:
        """Record that gradients have changed since synchronize()."""
        self._new = True

    def end_step(self) -> None:
        """Record the end of a step. All ranks call it."""
        self._synchronized = False

    def reset(self) -> None:
        """Give up a step in which a call has failed: wait for the calls that have started on all ranks, and
        drop their results."""
        for group in self._groups[: self._started]:
            if group[0].handle is not None:
                with contextlib.suppress(RuntimeError, ValueError):
                    group[0].handle.wait()
        for slot in self._slots:
            slot.handle, slot.ready, slot.passes = None, False, 0
        self._started, self._synchronized, self._new = 0, False, False

    def reduce_without_gradients(self) -> None:
        """Take part in a step of other ranks, without gradients before or after. Collective.

        Raises:
            RuntimeError: gradients of this rank are in flight.
        """
        if self.busy:
            raise RuntimeError("join() between backward() and step() or synchronize()")
        for slot in self._slots:
            slot.parameter.grad = None
            slot.problem = NO_JOIN if slot.is_sharded else ""
        self._reduce()
        for slot in self._slots:
            slot.parameter.grad = None

    def _reduce(self, step: Any = None) -> None:
        for slot in self._slots:
            slot.ready = True
        self._start_ready()
        self._agree_on_kinds(step)
        self._start_ready()
        if step is not None:
            step.wait()  # steps of different optimizers may have plans that never complete
        for group in self._groups:
            for slot in group:
                slot.finish(self._scales[1], self._op.divisor(self.ranks.size))
        for slot in self._slots:
            slot.ready, slot.passes = False, 0
        self._started = 0

    def _agree_on_kinds(self, step: Any) -> None:
        """Agree on the kinds of gradients of parameters that had none so far. Dense on any rank is dense on
        all. Waits for the step's code first: a blocking call of the library makes no progress on MPI's own
        calls."""
        unknown = [slot for slot in self._slots if slot.kind == UNKNOWN]
        if not unknown:
            return
        if step is not None:
            step.wait()
        self._check_same_parameters()
        kinds = numpy.array([slot.gradient_kind() for slot in unknown], numpy.int32)
        allreduce_array(kinds, "max", comm=self.ranks.plain, out=kinds)
        if self._sparse_as_dense:
            kinds[kinds == SPARSE] = DENSE
        for slot, kind in zip(unknown, kinds):
            slot.set_kind(int(kind))
        for group in _group([slot for slot in unknown if slot.kind != UNKNOWN]):
            refuse_average(group[0].parameter, self._op)
            if group[0].kind == DENSE:
                _open_dense(group, self._op, self._compression, self.ranks)
            else:
                group[0].open(self._op, self._compression.hints, self.ranks)
            self._groups.append(group)
            self.sharded += [slot for slot in group if slot.is_sharded and slot.kind == SPARSE]

    def _options(self) -> str:
        """The options that must be equal on all ranks, in words."""
        others = {
            f"compression {self._compression}": self._compression != Compression.none,
            f"gradient_predivide_factor {self._scales[1]}": self._scales[1] != 1,
            f"backward_passes_per_step {self._passes}": self._passes != 1,
            "sparse_as_dense": self._sparse_as_dense,
            f"sharded state of {self.shards}": self.shards,
        }
        return ", ".join([f"op {self._op.name}", *(text for text, is_set in others.items() if is_set)])

    def _check_same_parameters(self) -> None:
        """Check that new parameters are the same, in the same order, on all ranks, and the options.
        Collective; blocks.

        Raises:
            ValueError: parameters or options differ; on all ranks.
        """
        new = [str(slot) for slot in reversed(self._slots[self._compared :])]
        if not new:
            return
        agree(f"a step of DistributedOptimizer with {self._options()}", "", self.ranks)
        checksum = zlib.crc32("\n".join(new).encode())
        extremes = numpy.array([checksum, -checksum])
        allreduce_array(extremes, "max", comm=self.ranks.plain, out=extremes)
        if extremes[0] != -extremes[1]:
            _raise_difference(new, self._process_set)
        self._compared = len(self._slots)


class IdleReducer:
    """The reducer of a rank that is not in the process set: gradients stay as they are."""

    seconds, busy, shards = 0.0, False, ""

    def __init__(self, *unused: Any) -> None:
        pass

    def state(self) -> dict[int, Any]:
        """No states."""
        return {}

    def _nothing(self, *unused: Any) -> None:
        """Do nothing."""

    add = check = load = ready = synchronize = synchronize_new = mark_new = end_step = reset = _nothing


def _raise_difference(mine: list[str], process_set: ProcessSet) -> None:
    """Raise ValueError that names the first difference between ranks' parameters. Collective."""
    for rank, theirs in zip(process_set.ranks, allgather_object(mine, None, process_set)):
        for here, there in itertools.zip_longest(mine, theirs, fillvalue="none"):
            if here != there:
                raise ValueError(f"a parameter of the optimizer is {here} here, and {there} on rank {rank}")


def _open_dense(group: list[ParameterSlot], op: Op, compression: Compressor, ranks: World) -> None:
    """Create the plan and the buffer of a group of dense gradients. Collective."""
    dtype = compression.buffer_type(group[0].parameter.dtype, ranks.plain)
    sizes = [slot.parameter.numel() for slot in group]
    buffer = torch.zeros(sum(sizes), dtype=dtype)
    for slot, piece in zip(group, buffer.split(sizes)):
        slot.buffer = piece.as_strided(slot.parameter.shape, strides_of(slot.parameter))
    how = {"comm": ranks.comm(type_of(buffer)), "hints": {**compression.hints, **UNCHECKED}}
    group[0].plan = Plan(buffer, op.reduction, out=buffer, **how)


def _group(slots: list[ParameterSlot]) -> list[list[ParameterSlot]]:
    """Group neighbouring dense slots of one type, up to GROUP_BYTES; each sparse slot is its own group."""
    groups: list[list[ParameterSlot]] = []
    bytes_left = 0
    for slot in slots:
        bytes_here = slot.parameter.numel() * slot.parameter.element_size()
        last = groups[-1][-1] if groups else None
        joins = (
            last is not None
            and last.kind == slot.kind == DENSE
            and last.parameter.dtype == slot.parameter.dtype
        )
        if joins and bytes_here <= bytes_left:
            groups[-1].append(slot)
            bytes_left -= bytes_here
        else:
            groups.append([slot])
            bytes_left = GROUP_BYTES - bytes_here
    return groups
