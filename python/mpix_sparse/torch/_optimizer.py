# SPDX-License-Identifier: BSD-3-Clause
"""DistributedOptimizer: a PyTorch optimizer that reduces gradients over all ranks, with Horovod's
interface."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import weakref
from typing import Any, Callable, Iterable, Iterator

import torch

from ._adasum_optimizer import Adaptive
from ._compression import Compression, Compressor
from ._compressor import STATE, refuse_compression
from ._dgc import Dgc
from ._join import retire
from ._process_set import global_process_set, set_of
from ._reducer import IdleReducer, Reducer
from ._sharding import SHARDS, Sharding, refuse_sharding
from ._tensors import Adasum, Average, Op, choose_op


class _Distributed:
    """Mixin that overrides methods of an optimizer's class."""

    _reducer: Reducer
    _compression: Compressor
    _hooks: list[Any]
    _skipping: bool
    _sharding: Sharding | None
    _reducer_ref: Callable[[], Any]  # weak; the original optimizer shares this attribute

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters, whose gradients are reduced from the next step on. Collective: all ranks add the
        same.

        Raises:
            ValueError: the group's options do not allow the compression.
        """
        self._compression.refuse(group)
        super().add_param_group(group)  # type: ignore[misc]
        self._add_parameters(_of_group(len(self.param_groups) - 1, self.param_groups[-1], {}))

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state, and with Compression.dgc the state of this rank's sparsifiers. An exact
        restart needs each rank's own state. With shard_state the state of a sharded parameter is that of the
        rows that this rank owns."""
        state, kept = super().state_dict(), self._reducer.state()  # type: ignore[misc]
        shards = self._sharding.state(self) if self._sharding else {}
        return {**state, **({STATE: kept} if kept else {}), **shards}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of this rank, or of an optimizer without this package. If the state has no
        sparsifiers, theirs stay unchanged.

        Raises:
            ValueError: the state is malformed, belongs to other parameters, or is sharded and belongs to
                another rank or number of ranks; nothing has changed.
            RuntimeError: gradients are in flight.
        """
        if self._reducer.busy:
            raise RuntimeError("load_state_dict() between backward() and step() or synchronize()")
        rest = {key: value for key, value in state_dict.items() if key not in (STATE, SHARDS)}
        kept, shards = state_dict.get(STATE, {}), state_dict.get(SHARDS)
        self._reducer.check(kept)
        if shards and self._sharding is None:
            raise ValueError("the state is sharded; load it with shard_state=True")
        if shards:
            self._sharding.check(shards)
        super().load_state_dict(rest)  # type: ignore[misc]
        self._reducer.load(kept)
        if self._sharding:
            self._sharding.load(self, shards)

    def _add_parameters(self, pairs: list[tuple[str, torch.nn.Parameter]]) -> None:
        """Reduce the gradients of these parameters too."""
        self._reducer.add(pairs)
        self._hooks += [_add_gradient_hook(parameter, self._reducer.ready) for _, parameter in pairs]

    @property
    def communication_seconds(self) -> float:
        """Seconds that this rank has spent so far to start, progress and wait for reductions, also within
        backward passes."""
        return self._reducer.seconds

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """An attribute that torch.amp.GradScaler reads first in its step(), before it looks for infinities
        and maybe skips the optimizer's step(). So gradients are reduced here, and all ranks find the same
        infinities.

        Raises:
            RuntimeError: the state is sharded, so that each rank would find other infinities.
        """
        if self._sharding:
            raise RuntimeError("GradScaler is not for shard_state=True: each rank has other gradients")
        if not self._skipping:
            self._reducer.synchronize_new()
        return bool(self.__dict__.get("_step_supports_amp_scaling", False))

    def synchronize(self) -> None:
        """Wait until all gradients are reduced, for example to clip them. Without this call step() does it.
        A step() after this call checks if any rank has new gradients, except within skip_synchronize().
        Collective."""
        self._reducer.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """A block in which step() uses the gradients unchanged."""
        self._skipping = True
        try:
            yield
        finally:
            self._skipping = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Wait until all gradients are reduced, those of the closure if given, and make a step.
        Collective."""
        return self._reduce_and(super().step, closure)  # type: ignore[misc]

    def _reduce_and(self, step: Callable[..., Any], closure: Callable[[], Any] | None) -> Any:
        def reduced() -> Any:
            loss = closure()
            self.synchronize()
            return loss

        if closure is None and not self._skipping:
            self._reducer.synchronize_new()
        how = closure and reduced
        result = self._sharding.step(self, step, how) if self._sharding else step(how)
        self._reducer.end_step()
        return result

    def zero_grad(self, *arguments: Any, **named: Any) -> Any:
        """Clear the gradients.

        Raises:
            RuntimeError: gradients are in flight; call step() or synchronize() first.
        """
        if self._reducer.busy:
            raise RuntimeError(
                "zero_grad() between backward() and step() or synchronize(): gradients are in flight"
            )
        self._reducer.mark_new()
        return super().zero_grad(*arguments, **named)  # type: ignore[misc]


def _add_gradient_hook(parameter: torch.nn.Parameter, ready: Callable[[torch.nn.Parameter], None]) -> Any:
    """Call a function whenever a gradient has been accumulated in a parameter. Returns a handle that
    removes the hook, and an object that must be kept alive."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(ready), None
    # The node that accumulates a leaf's gradient is the input of any view of it, and lives while referenced.
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return node.register_hook(lambda *unused: ready(parameter)), node


def _remove_hooks(hooks: list[Any], reducer: Reducer) -> None:
    """Detach a deleted optimizer from its model, which may get another one. Other ranks may still use this
    one."""
    for handle, _ in hooks:
        handle.remove()
    retire(reducer)


def _of_group(i: int, group: dict[str, Any], names: dict[int, str]) -> list[tuple[str, torch.nn.Parameter]]:
    """Names and parameters of group i of an optimizer, those that need gradients."""
    found = []
    for j, parameter in enumerate(group["params"]):
        if names and id(parameter) not in names:
            raise ValueError(f"named_parameters lacks parameter {j} of the optimizer's group {i}")
        if parameter.requires_grad:
            found.append((names.get(id(parameter), f"parameter {i}.{j}"), parameter))
    return found


def _refuse_wrapped(optimizer: Any) -> None:
    """Raise TypeError or ValueError unless this is an optimizer without a DistributedOptimizer."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"an optimizer of PyTorch is needed, not {type(optimizer).__name__}")
    if isinstance(optimizer, (_Distributed, Adaptive)):
        raise ValueError("the optimizer is a DistributedOptimizer: its gradients would be reduced twice")
    if optimizer.__dict__.get("_reducer_ref", lambda: None)() is not None:
        raise ValueError("the optimizer has a DistributedOptimizer: its gradients would be reduced twice")


def _refuse_numbers(passes: Any, predivide: Any, op: Op) -> None:
    if not isinstance(passes, numbers.Integral) or passes < 1:
        raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more, and whole")
    if not isinstance(predivide, numbers.Real) or not 0 < predivide < math.inf:
        raise ValueError(f"gradient_predivide_factor is {predivide}; it must be a number above 0")
    if predivide != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor needs op Average")


def _named(optimizer: torch.optim.Optimizer, named_parameters: Any) -> list[tuple[str, torch.nn.Parameter]]:
    """Names and parameters of an optimizer, those that need gradients, in the optimizer's order."""
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in named_parameters or ()):
        raise TypeError("named_parameters must be pairs of a name and a parameter: model.named_parameters()")
    names = {id(parameter): name for name, parameter in named_parameters or ()}
    if named_parameters is not None and len(set(names.values())) != len(names):
        raise ValueError("named_parameters has a name twice")
    return [pair for i, group in enumerate(optimizer.param_groups) for pair in _of_group(i, group, names)]


def _reduce_before_patched_step(optimizer: Any, made: Any) -> None:
    """A learning rate scheduler replaces step() in its optimizer's instance attributes, which the two
    optimizers share, and so hides the class's step(). Replace that by one that reduces first. It keeps the
    original optimizer alive, as schedulers do not, but not the new one; the reduction ends with the new
    one."""
    patched, reference = optimizer.__dict__.get("step"), made._reducer_ref
    if patched is None:
        return

    @functools.wraps(patched)
    def step(closure: Callable[[], Any] | None = None) -> Any:
        distributed = reference()
        return patched(closure) if distributed is None else distributed._reduce_and(patched, closure)

    step.keeps = optimizer  # type: ignore[attr-defined]
    optimizer.step = step


def _wrap(optimizer: Any, reducer: Any, compression: Compressor, pairs: Any) -> Any:
    """A new optimizer that shares the state of another and reduces its gradients."""
    base = optimizer.__class__
    made = object.__new__(type(base.__name__, (_Distributed, base), {}))
    made.__dict__ = optimizer.__dict__
    made._reducer, made._compression = reducer, compression
    made._hooks, made._skipping, made._reducer_ref = [], False, weakref.ref(made)
    made._sharding = Sharding(reducer) if reducer.shards else None
    weakref.finalize(made, _remove_hooks, made._hooks, reducer).atexit = False
    _reduce_before_patched_step(optimizer, made)
    made._add_parameters(pairs)
    return made


def _wrap_adasum(optimizer: Any, compression: Compressor) -> Any:
    """A new optimizer that shares the state of another and combines changes of parameters."""
    base = optimizer.__class__
    made = object.__new__(type(base.__name__, (Adaptive, base), {}))
    made.__dict__ = optimizer.__dict__
    made._compression, made._reducer_ref = compression, weakref.ref(made)
    _reduce_before_patched_step(optimizer, made)
    return made


def _refuse_with_set(process_set: Any, op: Op, compression: Compressor) -> None:
    """Raise an exception for options that are for all ranks only."""
    if set_of(process_set) is global_process_set:
        return
    if op is Adasum:
        raise NotImplementedError("op Adasum is for all ranks; process_set must be None")
    if isinstance(compression, Dgc):
        raise NotImplementedError("Compression.dgc is for all ranks; process_set must be None")


def _refuse_compression(compression: Any, optimizer: Any, op: Op, process_set: Any) -> None:
    """Raise an exception for a compression that the optimizer's options or the ranks do not allow."""
    refuse_compression(compression)
    _refuse_with_set(process_set, op, compression)
    for group in optimizer.param_groups:
        compression.refuse(group)


def _includes_this_rank(process_set: Any) -> bool:
    members = set_of(process_set)
    return members is global_process_set or members.included()


def DistributedOptimizer(  # noqa: N802  (Horovod's name)
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None = None,
    compression: Compressor = Compression.none,
    backward_passes_per_step: int = 1,
    op: Op = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: Any = None,
    sparse_views: bool = False,
    shard_state: bool = False,
) -> Any:
    """Create an optimizer that reduces gradients over all ranks before each step, during the backward pass.

    Gradients of embeddings with sparse=True are sent as rows and stay sparse; zeros of dense gradients
    are not sent. A parameter without a gradient on a rank counts as zeros there. All ranks must have the
    same parameters, by name and shape, in the same order, or the first step raises ValueError on all.
    After a step a dense gradient is in a buffer of this object, which the next step overwrites.

    Args:
        optimizer: the optimizer of the parameters, which shares its state.
        named_parameters: model.named_parameters(), for messages; if given, it must have all parameters.
        compression: Compression.none; bf16 or fp16 to send floats as 16 bits, while sums stay 32 bits; or
            dgc(...) to send the largest elements.
        backward_passes_per_step: backward() calls before each step(); PyTorch adds their gradients.
        op: Average, Sum, Min, Max or Product of gradients; or Adasum of changes of parameters, which each
            rank computes with its own gradients.
        gradient_predivide_factor: with Average, gradients are divided by it before the sum, and by ranks /
            factor after it.
        num_groups, groups: Horovod's arguments; ignored. Neighbouring dense parameters of one type are fused,
            up to 4 MiB. A sparse gradient has a call of its own.
        sparse_as_dense: make sparse gradients dense.
        process_set: the ranks that reduce, a ProcessSet; None is all ranks. Other ranks make steps alone, and
            join() does not take part in steps of some ranks only.
        sparse_views: leave reduced sparse gradients in the library's host memory, which saves a copy. They
            can be read, as optimizers do; a write, such as clipping, ends the process.
        shard_state: keep the optimizer's state of row r of a sparse gradient on rank r mod ranks only, which
            updates the row and sends it to all. For SGD, Adagrad and SparseAdam; see _sharding.py.

    Returns:
        An optimizer of a derived class, with synchronize(), skip_synchronize() and communication_seconds.

    Raises:
        TypeError, ValueError: an argument is wrong.
        NotImplementedError: a process set of some ranks with op Adasum or Compression.dgc.
    """
    _refuse_wrapped(optimizer)
    _refuse_numbers(backward_passes_per_step, gradient_predivide_factor, op)
    _refuse_compression(compression, optimizer, op, process_set)
    chosen = choose_op(None, op)
    refuse_sharding(shard_state, optimizer, chosen, sparse_as_dense)
    pairs = _named(optimizer, list(named_parameters) if named_parameters is not None else None)
    if chosen is Adasum:
        return _wrap_adasum(optimizer, compression)
    scales, name = (1 / gradient_predivide_factor, gradient_predivide_factor), type(optimizer).__name__
    how = scales, sparse_as_dense, sparse_views, process_set, name if shard_state else ""
    kind = Reducer if _includes_this_rank(process_set) else IdleReducer
    return _wrap(optimizer, kind(compression, chosen, backward_passes_per_step, *how), compression, pairs)
