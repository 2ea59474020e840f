# SPDX-License-Identifier: BSD-3-Clause
"""The allreduce as a PyTorch operator with a gradient, torch.ops.mpix_sparse.allreduce, for graphs that
PyTorch compiles or exports."""

from __future__ import annotations

from typing import Any, Callable

import torch

SCHEMA = "(Tensor tensor, str op, float prescale, float postscale, int process_set=0) -> Tensor"
DIFFERENTIABLE = ("Average", "Sum")

_library: Any = None


def refuse_gradient(name: str) -> None:
    """Raise RuntimeError for an op without a gradient."""
    if name not in DIFFERENTIABLE:
        raise RuntimeError(f"the gradient of an allreduce with op {name} is not defined")


def _find_is_compiling() -> Callable[[], bool]:
    """A function that is True while PyTorch compiles; always False in versions that do not."""
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", lambda: False)


is_compiling = _find_is_compiling()


def _never_eager(tensor: torch.Tensor) -> bool:
    return False


def _find_is_eager() -> Callable[[torch.Tensor], bool]:
    """A function that is True for a tensor whose call needs no operator: the tensor has no gradient, and
    PyTorch neither records a graph nor transforms the function. Always False if PyTorch does not tell."""
    try:
        is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        traces, modes = torch._C._get_tracing_state, torch._C._len_torch_dispatch_stack
        forward_ad = torch.autograd.forward_ad
        forward_ad._current_level
    except AttributeError:
        return _never_eager

    def is_eager(tensor: torch.Tensor) -> bool:
        if is_compiling() or tensor.requires_grad or type(tensor) is not torch.Tensor:
            return False
        return not (traces() or modes() or is_wrapped(tensor)) and forward_ad._current_level < 0

    return is_eager


is_eager = _find_is_eager()


def operator(reduce: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Register a function as the operator.

    Args:
        reduce: takes a dense tensor, the name of an op, factors before and after, and the number of a
            process set, 0 by default; returns a new tensor.

    Returns:
        The differentiable function. The gradient of a sum over ranks is the sum of the gradients.
    """

    def save_arguments(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.arguments = inputs[1:]

    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        refuse_gradient(ctx.arguments[0])
        return made(gradient, *ctx.arguments), *[None] * len(ctx.arguments)

    make = _custom_op if hasattr(torch.library, "custom_op") else _function
    made = make(reduce, save_arguments, backward)
    return made


def sparse_function(reduce: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The differentiable function of sparse tensors, which operators do not take.

    Args:
        reduce: takes a tensor, an Op and other arguments; returns a new tensor.
    """

    class Allreduce(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: torch.Tensor, *arguments: Any) -> torch.Tensor:
            ctx.arguments = arguments
            return reduce(tensor, *arguments)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            refuse_gradient(ctx.arguments[0].name)
            return reduce(gradient, *ctx.arguments), *[None] * len(ctx.arguments)

    return Allreduce.apply


def _custom_op(reduce: Any, save_arguments: Any, backward: Any) -> Any:
    """PyTorch 2.4 and newer."""
    made = torch.library.custom_op("mpix_sparse::allreduce", reduce, mutates_args=(), schema=SCHEMA)
    made.register_fake(lambda tensor, *unused: torch.empty_like(tensor))
    made.register_autograd(backward, setup_context=save_arguments)
    return made


def _function(reduce: Any, save_arguments: Any, backward: Any) -> Any:
    """Older PyTorch, where operators defined in Python get their gradient from the functions that they
    call."""

    class Allreduce(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
            save_arguments(ctx, inputs, None)
            return reduce(*inputs)

    Allreduce.backward = staticmethod(backward)
    global _library
    _library = torch.library.Library("mpix_sparse", "DEF")
    _library.define("allreduce" + SCHEMA)
    _library.impl("allreduce", Allreduce.apply, "CompositeImplicitAutograd")
    return Allreduce.apply
