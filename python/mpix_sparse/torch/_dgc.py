# SPDX-License-Identifier: BSD-3-Clause
"""Deep Gradient Compression (Lin et al., ICLR 2018): sends the largest elements of each gradient and keeps
the others for later steps.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy
import torch

from .. import CooPlan, _mpi, _topk
from .. import allreduce as allreduce_array
from ._compressor import Compressor
from ._tensors import Op, as_array, from_numpy, on_host, scale_, wait_for_stream, type_of
from ._world import UNCHECKED, world

WARMUP_RATIO = 0.25  # in the first epoch of a warm-up
SEEDS = 1 << 31


_BOUNDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("ratio", lambda share: 0 < share <= 1, "above 0 and at most 1"),
    ("momentum", lambda factor: 0 <= factor < 1, "that is 0 or more and below 1"),
    ("warmup_epochs", lambda epochs: epochs >= 0, "that is 0 or more"),
    ("steps_per_epoch", lambda steps: steps >= 1, "that is 1 or more"),
    ("clip", lambda norm: norm > 0, "above 0, or None"),
    ("sample_ratio", lambda share: 0 < share <= 1, "above 0 and at most 1"),
    ("dense_below", lambda elements: elements >= 0, "that is 0 or more"),
)


@dataclass(frozen=True)
class Dgc(Compressor):
    """Compression.dgc(ratio, ...), for a DistributedOptimizer with op Average or Sum.

    The compression applies momentum before it selects elements (momentum correction), so the optimizer must
    have none. Elements that are not selected stay for later steps (error feedback). Gradients of embeddings
    with sparse=True are sent as rows, all of them and without momentum; sparse_as_dense makes them dense. The
    state is in the optimizer's state_dict(); each rank has its own.

    Attributes:
        ratio: share of a gradient's elements that is sent, in (0, 1].
        momentum: in [0, 1).
        warmup_epochs: epochs in which the share falls from a quarter to `ratio`, by the same factor each.
        steps_per_epoch: steps in an epoch; with 1, warmup_epochs counts steps.
        clip: maximal norm of a parameter's gradient; each of N ranks clips its gradient to clip / sqrt(N).
            None for no clipping.
        sample_ratio: share of the elements that the threshold is estimated from, in (0, 1].
        masking: True to zero the velocity of elements that were sent, as in the paper. At a share of a few
            percent this costs more than it gains: doc/dgc.md.
        dense_below: gradients of parameters with fewer elements are sent dense, with the same momentum.
        group: None, or a communicator of mpi4py over whose ranks parameters are split (tensor parallelism):
            all parts of a parameter have one threshold. init() gets the ranks that have the same part.

    Raises:
        ValueError: a value is out of bounds or not a number.
        TypeError: group is not a communicator.
    """

    wire_values: str = field(default="full", init=False, repr=False)
    dtype: torch.dtype | None = field(default=None, init=False, repr=False)
    ratio: float = 0.01
    momentum: float = 0.9
    warmup_epochs: int = 0
    steps_per_epoch: int = 1
    clip: float | None = None
    sample_ratio: float = 0.01
    masking: bool = False
    dense_below: int = 4096
    group: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        return repr(self)

    def __post_init__(self) -> None:
        for name, holds, bounds in _BOUNDS:
            value = getattr(self, name)
            if name == "clip" and value is None:
                continue
            if not (isinstance(value, numbers.Real) and holds(value)):
                raise ValueError(f"{name} is {value!r}; it must be a number {bounds}")
        if self.group is not None:
            _mpi.communicator(self.group, "group")

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        raise ValueError("Compression.dgc keeps what does not travel: it is for a DistributedOptimizer")

    def refuse(self, group: dict[str, Any]) -> None:
        momentum = max(group.get("momentum", 0), *group.get("betas", (0,))[:1])
        if momentum > 0:
            raise ValueError(
                f"the optimizer has a momentum of {momentum}; with Compression.dgc it must have none, "
                "for dgc(momentum=...) applies it before elements are selected"
            )

    def sparsifier(self, parameter: torch.nn.Parameter, number: int) -> Sparsifier:
        return Sparsifier(self, parameter, number)

    def ratio_at(self, step: int) -> float:
        """The share that is sent in a step; steps count from 0."""
        epoch = step // self.steps_per_epoch
        if epoch >= self.warmup_epochs or self.ratio >= WARMUP_RATIO:
            return self.ratio
        return WARMUP_RATIO * (self.ratio / WARMUP_RATIO) ** (epoch / self.warmup_epochs)


_SAVED = {"velocity", "residual"}


def _is_dense(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.is_floating_point()


class Sparsifier:
    """The state of one parameter's gradient, on the parameter's device; in 32 bits for 16-bit parameters."""

    def __init__(self, options: Dgc, parameter: torch.nn.Parameter, number: int) -> None:
        self._options, self._parameter, self.number = options, parameter, number
        self.travels_dense = parameter.numel() < options.dense_below
        self._dtype = torch.float64 if parameter.dtype == torch.float64 else torch.float32
        self._velocity: torch.Tensor | None = None
        self._residual: torch.Tensor | None = None
        self._reduced: torch.Tensor | None = None
        self._step = 0
        self._result: Any = None

    def _on_device(self, tensor: torch.Tensor | None) -> torch.Tensor:
        """The tensor on the parameter's present device; zeros of the parameter's shape for None."""
        if tensor is None:
            return torch.zeros(self._parameter.shape, dtype=self._dtype, device=self._parameter.device)
        return tensor.to(self._parameter.device)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint: the step, and the tensors that exist."""
        kept = {"step": self._step, "velocity": self._velocity, "residual": self._residual}
        return {name: value for name, value in kept.items() if value is not None}

    def check(self, state: Any) -> None:
        """Check a state for load().

        Raises:
            ValueError: the state is malformed or belongs to another parameter.
        """
        whose = f"to be loaded for parameter {self.number}"
        if not isinstance(state, dict):
            raise ValueError(f"the state {whose} is a {type(state).__name__}; it must be a dict")
        step = state.get("step")
        if not isinstance(step, int) or step < 0:
            raise ValueError(f"the step {whose} is {step!r}; it must be a whole number that is 0 or more")
        for name in _SAVED & state.keys():
            tensor = state[name]
            if not _is_dense(tensor):
                raise ValueError(f"the {name} {whose} is no dense tensor of real floating-point numbers")
            if tensor.shape != self._parameter.shape:
                shapes = f"{tuple(tensor.shape)}, and the parameter of {tuple(self._parameter.shape)}"
                raise ValueError(f"the {name} {whose} is of shape {shapes}")

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state that check() has accepted; missing entries stay unchanged."""
        for name in _SAVED & state.keys():
            setattr(self, f"_{name}", self._on_device(state[name].detach().to(self._dtype, copy=True)))
        self._step = state["step"]

    def open(self, op: Op) -> None:
        """Create the plan for the elements to send. Collective."""
        if op.reduction != "sum":
            raise ValueError(f"Compression.dgc needs op Average or Sum, not {op.name}")
        name = type_of(self._on_device(None))
        how = {"comm": world().comm(name), "hints": UNCHECKED}
        self._plan = CooPlan(self._parameter.numel(), name, **how)

    def start(self, gradient: torch.Tensor | None, prescale: float) -> Any:
        """Select elements, and start to reduce them. Returns a handle. Collective over the group."""
        mine = self._on_device(None) if gradient is None else self._dense(gradient)
        self._velocity, self._residual = self._on_device(self._velocity), self._on_device(self._residual)
        seed = (self.number * 7919 + self._step) * world().size + world().rank
        scale = prescale * self._clipping(mine)
        wait_for_stream(mine)
        chosen = _topk.dgc_step(
            as_array(mine),
            as_array(self._velocity),
            as_array(self._residual),
            self._options.ratio_at(self._step),
            momentum=self._options.momentum,
            scale=scale,
            sample=self._options.sample_ratio,
            seed=seed % SEEDS,
            masking=self._options.masking,
            group=self._options.group,
        )
        self._step += 1
        indices, values = (on_host(torch.as_tensor(array)) for array in chosen)
        return self._plan.start(as_array(indices), as_array(values), reuse=self._result)

    def _dense(self, gradient: torch.Tensor) -> torch.Tensor:
        gradient = gradient.detach().to_dense() if gradient.is_sparse else gradient.detach()
        return self._on_device(gradient).to(self._dtype).contiguous()

    def _clipping(self, gradient: torch.Tensor) -> float:
        """The factor that limits the gradient's norm."""
        if self._options.clip is None:
            return 1.0
        square = numpy.array([float(gradient.double().square().sum())])
        if self._options.group is not None:
            square = allreduce_array(square, comm=self._options.group)
        allowed, norm = self._options.clip / math.sqrt(world().size), math.sqrt(square[0])
        return min(1.0, allowed / norm) if norm > 0 else 1.0

    def finish(self, result: Any, postscale: float, divisor: int) -> torch.Tensor:
        """The reduced gradient, from the elements of all ranks."""
        self._result = result
        positions = from_numpy(result.indices, torch.int64).to(self._parameter.device)
        values = scale_(from_numpy(result.values, self._dtype), postscale, divisor)
        self._reduced = self._on_device(self._reduced).zero_()
        self._reduced.view(-1)[positions] = values.to(self._parameter.device)
        return self._reduced.to(self._parameter.dtype)

    def correct_(self, gradient: torch.Tensor) -> None:
        """Apply momentum to a gradient that was sent dense."""
        self._velocity = self._on_device(self._velocity)
        self._velocity.mul_(self._options.momentum).add_(gradient)
        gradient.copy_(self._velocity)
        # Values that are not finite are passed on once, as for selected elements.
        self._velocity.masked_fill_(~torch.isfinite(self._velocity), 0)
