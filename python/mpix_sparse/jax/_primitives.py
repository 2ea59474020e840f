# SPDX-License-Identifier: BSD-3-Clause
"""The calls as primitives of jax: their types, lowering, derivatives and vmap."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import jax
from jax.interpreters import ad, batching, mlir

from . import _calls, _ffi
from ._order import ORDER

try:
    from jax._src import dispatch
    from jax._src.core import ShapedArray, abstract_token
    from jax._src.interpreters.mlir import TokenSet
    from jax.extend.core import Primitive
except ImportError as reason:
    raise ImportError(f"mpix_sparse.jax does not support jax {jax.__version__}: {reason}") from reason

_ffi.register(_calls.run)


def _lower(ctx: Any, *operands: Any, **parameters: Any) -> Any:
    """The custom call. Its last operand and result are the effect's token."""
    arrays = [aval for aval in ctx.avals_in if aval is not abstract_token]
    text = _call_text(arrays, **parameters)
    rule = jax.ffi.ffi_lowering(_ffi.TARGET, has_side_effect=True)
    inner = ctx.replace(avals_in=(*ctx.avals_in, abstract_token), avals_out=(*ctx.avals_out, abstract_token))
    *results, token = rule(inner, *operands, ctx.tokens_in.get(ORDER), **{_ffi.ATTRIBUTE: text})
    ctx.set_tokens_out(TokenSet({ORDER: token}))
    return results


def _call_text(arrays: Sequence[Any], op: str, world: int, count: int = 0, capacity: int = 0) -> str:
    """The text of a call, from the types of its operands."""
    value = arrays[1] if capacity else arrays[0]
    common = op, world, value.dtype.name
    if not capacity:
        return _calls.Call("allreduce", *common, value.shape, has_token=len(arrays) == 2).text()
    coordinates = arrays[0].dtype.name, arrays[0].shape[0], count, capacity
    return _calls.Call("allreduce_coo", *common, value.shape[1:], len(arrays) == 3, *coordinates).text()


def _refuse_platform(ctx: Any, *operands: Any, **parameters: Any) -> Any:
    platforms = ", ".join(getattr(ctx.module_context, "platforms", ("a device",)))
    raise NotImplementedError(
        f"mpix_sparse.jax reduces arrays on the CPU or CUDA, and this program is for {platforms}; set "
        "JAX_PLATFORMS=cpu, or jax.device_put the array to jax.devices('cpu')[0]"
    )


def _primitive(name: str, results: Any) -> Primitive:
    """A primitive with the effect; results(*operands, **parameters) are the types of its results."""
    made = Primitive(name)
    made.multiple_results = True
    made.def_impl(functools.partial(dispatch.apply_primitive, made))
    made.def_effectful_abstract_eval(lambda *args, **parameters: (results(*args, **parameters), {ORDER}))
    mlir.register_lowering(made, _refuse_platform)
    for platform in ("cpu", "cuda"):
        mlir.register_lowering(made, _lower, platform=platform)
    return made


def _allreduce_results(*operands: Any, **parameters: Any) -> list[Any]:
    return [ShapedArray(operand.shape, operand.dtype) for operand in operands]


def _coo_results(indices: Any, values: Any, *token: Any, capacity: int, **parameters: Any) -> list[Any]:
    made = [
        ShapedArray((capacity,), indices.dtype),
        ShapedArray((capacity, *values.shape[1:]), values.dtype),
        ShapedArray((), indices.dtype),
    ]
    return made + _allreduce_results(*token)


allreduce_p = _primitive("mpix_sparse_allreduce", _allreduce_results)
allreduce_coo_p = _primitive("mpix_sparse_allreduce_coo", _coo_results)


def refuse_gradient(op: str) -> None:
    """Raise NotImplementedError for an op without a gradient."""
    if op != "sum":
        raise NotImplementedError(f"the gradient of an allreduce with op {op!r} is not defined")


def _allreduce_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    """The sum is linear: its tangent is the sum of the tangents."""
    results = allreduce_p.bind(*primals, **parameters)
    if type(tangents[0]) is ad.Zero:
        return results, list(tangents)
    refuse_gradient(parameters["op"])
    return results, [*allreduce_p.bind(tangents[0], **parameters), *tangents[1:]]


def _allreduce_transpose(cotangents: Sequence[Any], *operands: Any, **parameters: Any) -> list[Any]:
    """The sum over ranks, as a map between the arrays of all ranks, is its own transpose."""
    refuse_gradient(parameters["op"])
    cotangent = ad.instantiate_zeros(cotangents[0])
    return [*allreduce_p.bind(cotangent, **parameters), *(None for _ in operands[1:])]


def _allreduce_batch(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> Any:
    """One call for the whole batch."""
    if any(axis is not batching.not_mapped for axis in axes[1:]):
        raise NotImplementedError("the token of an allreduce cannot be an axis of vmap")
    return allreduce_p.bind(*operands, **parameters), list(axes)


def _refuse_batch(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> Any:
    raise NotImplementedError(
        "allreduce_coo has no vmap: each element of the batch would have a union of its own; call it outside "
        "of vmap, or use values of shape (nnz, batch)"
    )


ad.primitive_jvps[allreduce_p] = _allreduce_jvp
ad.primitive_transposes[allreduce_p] = _allreduce_transpose
batching.primitive_batchers[allreduce_p] = _allreduce_batch
batching.primitive_batchers[allreduce_coo_p] = _refuse_batch
