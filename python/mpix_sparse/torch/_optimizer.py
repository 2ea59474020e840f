# SPDX-License-Identifier: BSD-3-Clause
"""An optimizer of PyTorch whose gradients are reduced over all ranks. The interface follows Horovod's
documentation."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import weakref
from typing import Any, Callable, Iterable, Iterator

import torch

from ._compression import Compression, Compressor
from ._compressor import STATE, refuse_compression
from ._join import leave
from ._reducer import Reducer
from ._tensors import Average, Op, choose_op
from ._world import refuse_process_set


class _Distributed:
    """What is put in front of the methods of an optimizer's class."""

    _reducer: Reducer
    _compression: Compressor
    _hooks: list[Any]
    _skipping: bool
    _alive: Callable[[], Any]  # for the other optimizer, which has the same attributes

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters, whose gradients are reduced from the next step on. Collective, in that all ranks
        add the same.

        Raises:
            ValueError: the compression does not go with the group's options.
        """
        self._compression.refuse(group)
        super().add_param_group(group)  # type: ignore[misc]
        self._attend(_of_group(len(self.param_groups) - 1, self.param_groups[-1], {}))

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, and with Compression.dgc what this rank keeps of gradients: a run that goes on as
        if nothing had been needs each rank's own."""
        state, kept = super().state_dict(), self._reducer.state()  # type: ignore[misc]
        return {**state, STATE: kept} if kept else state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state, of this rank's or of an optimizer's without this package; what a rank keeps of
        gradients stays as it is where the state has nothing of that.

        Raises:
            ValueError: it is that of other parameters, or none; nothing has changed.
            RuntimeError: gradients are on their way.
        """
        if self._reducer.busy:
            raise RuntimeError("load_state_dict() between backward() and step() or synchronize()")
        rest = {key: value for key, value in state_dict.items() if key != STATE}
        kept = state_dict.get(STATE, {})
        self._reducer.check(kept)
        super().load_state_dict(rest)  # type: ignore[misc]
        self._reducer.load(kept)

    def _attend(self, pairs: list[tuple[str, torch.nn.Parameter]]) -> None:
        """Reduce the gradients of parameters too."""
        self._reducer.add(pairs)
        self._hooks += [_watch(parameter, self._reducer.ready) for _, parameter in pairs]

    @property
    def communication_seconds(self) -> float:
        """What this rank has spent so far on starting, moving and waiting for gradients, also within backward
        passes."""
        return self._reducer.seconds

    def synchronize(self) -> None:
        """Wait until all gradients are reduced, to clip them, say; step() does it unless it was done since
        they came. That can differ between ranks, so a step() after this asks all, but in a block of
        skip_synchronize(). Collective."""
        self._reducer.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """A block in which step() takes the gradients as they are."""
        self._skipping = True
        try:
            yield
        finally:
            self._skipping = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Wait until all gradients are reduced, those of the closure if there is one, and make a step.
        Collective."""
        return self._reduce_and(super().step, closure)  # type: ignore[misc]

    def _reduce_and(self, step: Callable[..., Any], closure: Callable[[], Any] | None) -> Any:
        def reduced() -> Any:
            loss = closure()
            self.synchronize()
            return loss

        if closure is None and not self._skipping:
            self._reducer.synchronize_new()
        outcome = step(closure and reduced)
        self._reducer.stepped()
        return outcome

    def zero_grad(self, *arguments: Any, **named: Any) -> Any:
        """Forget the gradients.

        Raises:
            RuntimeError: they are on their way; step() or synchronize() must come first.
        """
        if self._reducer.busy:
            raise RuntimeError(
                "zero_grad() between backward() and step() or synchronize(): gradients are in flight"
            )
        self._reducer.renew()
        return super().zero_grad(*arguments, **named)  # type: ignore[misc]


def _watch(parameter: torch.nn.Parameter, ready: Callable[[torch.nn.Parameter], None]) -> Any:
    """Have a function called whenever a gradient has been added to a parameter's. Returns the handle that
    ends that, and what must be kept."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(ready), None
    # The node that adds to a leaf's gradient is the source of any view of it, and lives while it is held.
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return node.register_hook(lambda *unused: ready(parameter)), node


def _end(hooks: list[Any], reducer: Reducer) -> None:
    """A model outlives its optimizers, and another one may follow; other ranks may not be done with this."""
    for handle, _ in hooks:
        handle.remove()
    leave(reducer)


def _of_group(i: int, group: dict[str, Any], names: dict[int, str]) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters of an optimizer's group that need gradients, with names."""
    found = []
    for j, parameter in enumerate(group["params"]):
        if names and id(parameter) not in names:
            raise ValueError(f"named_parameters lacks parameter {j} of the optimizer's group {i}")
        if parameter.requires_grad:
            found.append((names.get(id(parameter), f"parameter {i}.{j}"), parameter))
    return found


def _refuse_wrapped(optimizer: Any) -> None:
    """Refuse what gives gradients to two reducers, or is no optimizer."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"an optimizer of PyTorch is needed, not {type(optimizer).__name__}")
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer is a DistributedOptimizer: its gradients would be reduced twice")
    if optimizer.__dict__.get("_alive", lambda: None)() is not None:
        raise ValueError("the optimizer has a DistributedOptimizer: its gradients would be reduced twice")


def _refuse_numbers(passes: Any, predivide: Any, op: Op) -> None:
    if not isinstance(passes, numbers.Integral) or passes < 1:
        raise ValueError(f"backward_passes_per_step is {passes}; it must be 1 or more, and whole")
    if not isinstance(predivide, numbers.Real) or not 0 < predivide < math.inf:
        raise ValueError(f"gradient_predivide_factor is {predivide}; it must be a number above 0")
    if predivide != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor needs op Average")


def _named(optimizer: torch.optim.Optimizer, named_parameters: Any) -> list[tuple[str, torch.nn.Parameter]]:
    """The optimizer's parameters that need gradients, with names, in the optimizer's order."""
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in named_parameters or ()):
        raise TypeError("named_parameters must be pairs of a name and a parameter: model.named_parameters()")
    names = {id(parameter): name for name, parameter in named_parameters or ()}
    if named_parameters is not None and len(set(names.values())) != len(names):
        raise ValueError("named_parameters has a name twice")
    return [pair for i, group in enumerate(optimizer.param_groups) for pair in _of_group(i, group, names)]


def _reduce_before_patched_step(optimizer: Any, made: Any) -> None:
    """A learning rate scheduler replaces step() in its optimizer's own attributes, which both share, and so
    hides a class's: put one there that reduces first. It keeps the first optimizer, as schedulers do not,
    and not the other, whose end ends the reducing."""
    patched, reducing = optimizer.__dict__.get("step"), made._alive
    if patched is None:
        return

    @functools.wraps(patched)
    def step(closure: Callable[[], Any] | None = None) -> Any:
        alive = reducing()
        return patched(closure) if alive is None else alive._reduce_and(patched, closure)

    step.keeps = optimizer  # type: ignore[attr-defined]
    optimizer.step = step


def _made(optimizer: Any, reducer: Reducer, compression: Compressor, pairs: Any) -> Any:
    """An optimizer with another's state, whose gradients are reduced."""
    base = optimizer.__class__
    made = object.__new__(type(base.__name__, (_Distributed, base), {}))
    made.__dict__ = optimizer.__dict__
    made._reducer, made._compression = reducer, compression
    made._hooks, made._skipping, made._alive = [], False, weakref.ref(made)
    weakref.finalize(made, _end, made._hooks, reducer).atexit = False
    _reduce_before_patched_step(optimizer, made)
    made._attend(pairs)
    return made


def DistributedOptimizer(  # noqa: N802  (the name that users know)
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.nn.Parameter]] | None = None,
    compression: Compressor = Compression.none,
    backward_passes_per_step: int = 1,
    op: Op = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    sparse_views: bool = False,
    process_set: Any = None,
) -> Any:
    """An optimizer that reduces gradients over all ranks before each step, beside the backward pass.

    Gradients of embeddings with sparse=True travel as rows and stay sparse; dense ones are scanned, and what
    is zero is not sent. A parameter without a gradient on a rank counts as zeros there. All ranks have the
    same parameters, by their names and shapes, in the same order, or the first step is a ValueError on all.
    After a step a dense gradient is memory of this object, overwritten in the next.

    Args:
        optimizer: whose parameters are trained. It shares its state with what is returned.
        named_parameters: model.named_parameters(), for messages; if given, all that the optimizer has.
        compression: Compression.none, bf16 or fp16 to send floats as 16 bits, where sums stay 32 bits, or
            dgc(...) to send the largest elements.
        backward_passes_per_step: backward() calls before each step(), whose gradients PyTorch adds up.
        op: Average, Sum, Min, Max or Product.
        gradient_predivide_factor: with Average, gradients are divided by it before they are added, and by the
            rest of the number of ranks afterwards.
        num_groups, groups: Horovod's, of gradients that travel together; the library fuses as it sees fit.
        sparse_as_dense: make sparse gradients dense.
        sparse_views: leave reduced sparse gradients of the host where the library has them, which saves a
            copy: they can be read, as optimizers do, but writing to them, as clipping does, ends the process.
        process_set: None or global_process_set, which is all ranks.

    Returns:
        An optimizer of a class derived from that of `optimizer`, with synchronize(), skip_synchronize()
        and communication_seconds.

    Raises:
        TypeError, ValueError: an argument is wrong.
    """
    _refuse_wrapped(optimizer)
    _refuse_numbers(backward_passes_per_step, gradient_predivide_factor, op)
    refuse_process_set(process_set)
    refuse_compression(compression)
    for group in optimizer.param_groups:
        compression.refuse(group)
    pairs = _named(optimizer, list(named_parameters) if named_parameters is not None else None)
    scales = 1 / gradient_predivide_factor, gradient_predivide_factor
    passes = backward_passes_per_step
    how = sparse_as_dense, sparse_views
    reducer = Reducer(compression, choose_op(None, op), passes, scales, *how)
    return _made(optimizer, reducer, compression, pairs)
