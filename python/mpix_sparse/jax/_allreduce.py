# SPDX-License-Identifier: BSD-3-Clause
"""The functions that users call: allreduce and allreduce_coo."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax.experimental.sparse import BCOO, JAXSparse

from .. import _types
from ._primitives import allreduce_coo_p, allreduce_p, refuse_gradient
from ._world import world_of

COO_OPS = ("sum", "max", "min", "prod", "land", "band", "lor", "bor", "lxor", "bxor")
INDEX_TYPES = ("int32", "int64", "uint32", "uint64")


class Coordinates(NamedTuple):
    """Elements of a vector; the result of allreduce_coo().

    Attributes:
        indices: of shape (capacity,), ascending; the places after the first nnz hold count.
        values: of shape (capacity, ...), in the same order; the places after the first nnz hold zeros.
        nnz: the number of elements, an array of shape ().
    """

    indices: Any
    values: Any
    nnz: Any


def create_token() -> jax.Array:
    """A first token for `token` arguments: an array of shape () and type uint32."""
    return jnp.zeros((), jnp.uint32)


def _tokens(token: Any) -> tuple[Any, ...]:
    """The operands for a token.

    Raises:
        TypeError: it is not a token.
    """
    if token is None:
        return ()
    if getattr(token, "dtype", None) != jnp.uint32 or token.shape != ():
        raise TypeError("token must be None, or come from create_token() or another call")
    return (token,)


def _to_array(data: Any, name: str, taken: str) -> jax.Array:
    """Convert an argument to an array of jax.

    Raises:
        TypeError: it is a pytree, a sparse matrix, or no array; the text says that `taken` is taken.
    """
    refused = f"{name} is a {type(data).__name__}; {taken}"
    if isinstance(data, JAXSparse) or type(data).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{refused}; BCOO.from_bcsr and BCOO.from_scipy_sparse convert others")
    leaves = jax.tree_util.tree_leaves(data)
    is_sequence = isinstance(data, (list, tuple)) and not any(map(_is_array, leaves))
    if not (is_sequence or jax.tree_util.all_leaves([data])):
        raise TypeError(f"{refused}; jax.tree.map calls this function for each array of a pytree")
    try:
        return jnp.asarray(data)
    except (TypeError, ValueError) as reason:
        raise TypeError(f"{refused} ({reason})") from None


def _is_array(data: Any) -> bool:
    return isinstance(data, (jax.Array, numpy.ndarray))


def _check_type(array: Any, op: str, name: str) -> None:
    """Raise TypeError or ValueError unless op is defined for an argument's type."""
    if not isinstance(op, str):
        raise TypeError(f"op is {op!r}; it must be a name, such as 'sum'")
    try:
        _types.datatype(array.dtype.name)
        _types.operation(op, array.dtype.name)
    except TypeError as reason:
        raise TypeError(f"{name} holds {array.dtype.name}: {reason}") from None


def allreduce(
    x: Any, op: str = "sum", *, comm: Any = None, capacity: int | None = None, token: Any = None
) -> Any:
    """Reduce an array over all ranks. Collective over comm; inside jax.jit and other transformations too.

    All ranks receive the same bits. Calls run in the order in which the program makes them; see the package.
    The gradient of a sum is the sum over ranks of the gradients. jax.vmap gives one call for the whole batch.

    Args:
        x: array of any shape, the same shape and type on all ranks; or a BCOO without batch dimensions, of
            the same shape on all ranks, as for allreduce_coo(). For a pytree of arrays use
            jax.tree.map(allreduce, x).
        op: sum, max, min, prod, land, band, lor, bor, lxor or bxor; for bool land, lor or lxor; for complex
            numbers sum or prod.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py. The first call on a communicator
            duplicates it, and the program must not free it before MPI ends.
        capacity: for BCOO, nse of the result, as for allreduce_coo(). Must be None for arrays.
        token: None, or a token of create_token() or of another call, which this call waits for.

    Returns:
        A new array, or a BCOO with sorted, unique indices, padded as jax pads them. With a token, the pair
        (result, new token).

    Raises:
        TypeError, ValueError: an argument is wrong. While jax traces the function, only on this rank.
        NotImplementedError: the program is for a device that is not CUDA's; or op has no gradient.
        jax.errors.JaxRuntimeError: the call failed, or the ranks' calls differ; on all ranks. With the text
            of the C library. jax may raise it when the result is read.
    """
    if isinstance(x, BCOO):
        return _allreduce_bcoo(x, op, comm, capacity, token)
    if capacity is not None:
        raise ValueError("capacity is for BCOO")
    array = _to_array(x, "x", "an array or a BCOO is taken")
    _check_type(array, op, "x")
    world = world_of(comm)
    result, *tokens = allreduce_p.bind(array, *_tokens(token), op=op, world=world.number)
    return result if token is None else (result, *tokens)


def allreduce_coo(
    indices: Any,
    values: Any,
    count: int,
    op: str = "sum",
    *,
    capacity: int | None = None,
    comm: Any = None,
    token: Any = None,
) -> Any:
    """Reduce elements given by coordinates over all ranks. Collective over comm; inside jax.jit too.

    An absent element contributes nothing: the result holds the union of all ranks' indices. Indices may be
    unordered and may repeat; repeated elements are combined with op. Elements whose index is count are
    padding and are ignored. The gradient of a sum is the sum over ranks of the gradients of the values.

    Args:
        indices: of shape (nnz,), in [0, count], of type int32, int64, uint32 or uint64. nnz may differ
            between ranks and be 0; the type may not.
        values: of shape (nnz,), or (nnz, ...) if an element is a row. Type and row shape are the same on all
            ranks. Types: float32, float64, float16, bfloat16, int8 to int64, uint8 to uint64, and bool.
        count: elements of the whole vector, equal on all ranks; a Python integer that the type of indices
            can hold.
        op: sum, max, min or prod; for integers also land, band, lor, bor, lxor or bxor; for bool only land,
            lor or lxor.
        capacity: how many elements the result has room for, the same on all ranks. None for ranks times nnz,
            but at most count, which always suffices; then nnz must be the same on all ranks.
        comm, token: see allreduce().

    Returns:
        Coordinates. With a token, the pair (Coordinates, new token).

    Raises:
        TypeError, ValueError: an argument is wrong. While jax traces the function, only on this rank.
        NotImplementedError: the program is for a device that is not CUDA's; under jax.vmap; or op has no
            gradient.
        jax.errors.JaxRuntimeError: the union has more than capacity elements, an index is outside [0, count],
            the call failed, or the ranks' calls differ; on all ranks.
    """
    taken = "an array is taken, and allreduce() takes a BCOO"
    indices, values = _to_array(indices, "indices", taken), _to_array(values, "values", taken)
    count = _check_coordinates(indices, values, count)
    _check_type(values, op, "values")
    if jnp.iscomplexobj(values):
        raise TypeError(f"values hold {values.dtype}; complex numbers are reduced in dense arrays")
    world = world_of(comm)
    capacity = _capacity(capacity, world.size * indices.shape[0], count)
    settings = _Settings(op, world.number, count, capacity)
    result, *tokens = _coo(settings, indices, values, *_tokens(token))
    return Coordinates(*result) if token is None else (Coordinates(*result), *tokens)


def _check_coordinates(indices: Any, values: Any, count: int) -> int:
    """Check shapes and types; returns count as an integer.

    Raises:
        TypeError, ValueError: an argument is wrong.
    """
    if indices.dtype.name not in INDEX_TYPES:
        raise TypeError(f"indices hold {indices.dtype.name}; they must be {', '.join(INDEX_TYPES)}")
    if indices.ndim != 1:
        raise ValueError(f"indices have {indices.ndim} dimensions, not 1")
    if values.shape[:1] != indices.shape:
        raise ValueError(f"there are {indices.shape[0]} indices, and values of shape {values.shape}")
    if math.prod(values.shape[1:]) < 1:
        raise ValueError(f"values of shape {values.shape} have rows of no numbers")
    count = _types.to_integer(count, "count").value
    if not 0 < count <= numpy.iinfo(indices.dtype).max:
        raise ValueError(
            f"count is {count}; it must be positive and fit {indices.dtype}, the type of indices"
        )
    return count


def _capacity(wanted: int | None, union: int, count: int) -> int:
    """Room of the result, for a union of at most `union` elements."""
    if wanted is None:
        return max(1, min(union, count))
    found = _types.to_integer(wanted, "capacity").value
    if found < 1:
        raise ValueError(f"capacity is {found}; it must be positive")
    return min(found, count)


class _Settings(NamedTuple):
    """The parameters of allreduce_coo_p."""

    op: str
    world: int
    count: int
    capacity: int


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _coo(settings: _Settings, indices: Any, values: Any, *tokens: Any) -> Any:
    found = allreduce_coo_p.bind(indices, values, *tokens, **settings._asdict())
    return (tuple(found[:3]), *found[3:])


@_coo.defjvp
def _coo_jvp(settings: _Settings, primals: Any, tangents: Any) -> Any:
    """Add the tangents at the places of the result: each rank its own, then all ranks."""
    refuse_gradient(settings.op)
    indices, tangent = primals[0], tangents[1]
    results = _coo(settings, *primals)
    found, values, nnz = results[0]
    places = jnp.searchsorted(found, indices)
    # Padding has the index count, whose first place may hold none of this rank's elements.
    places = jnp.where(indices == settings.count, settings.capacity, places)
    local = jnp.zeros(values.shape, tangent.dtype).at[places].add(tangent, mode="drop")
    (total,) = allreduce_p.bind(local, op="sum", world=settings.world)
    zeros = [_no_tangent(array) for array in (found, nnz, *results[1:])]
    return results, ((zeros[0], total, zeros[1]), *zeros[2:])


def _no_tangent(array: Any) -> Any:
    """The tangent of an integer array."""
    return numpy.zeros(jnp.shape(array), jax.dtypes.float0)


def _allreduce_bcoo(matrix: BCOO, op: str, comm: Any, capacity: int | None, token: Any) -> Any:
    """allreduce() of a BCOO."""
    if matrix.n_batch:
        raise ValueError(f"x has {matrix.n_batch} batch dimensions; a BCOO without them can be reduced")
    shape = matrix.shape[: matrix.n_sparse]
    count = math.prod(shape)
    linear = _linear(matrix.indices, shape, count)
    found = allreduce_coo(linear, matrix.data, count, op, capacity=capacity, comm=comm, token=token)
    result, *tokens = (found,) if token is None else found
    indices = _coordinates(result.indices, shape, matrix.indices.dtype)
    sparse = BCOO((result.values, indices), shape=matrix.shape, indices_sorted=True, unique_indices=True)
    return sparse if token is None else (sparse, *tokens)


def _linear(indices: Any, shape: tuple[int, ...], count: int) -> Any:
    """Row-major numbers of elements; count for padding, which has an index outside of the shape.

    Raises:
        ValueError: the matrix has too many elements for the type.
    """
    dtype = jnp.int32 if count <= numpy.iinfo("int32").max else jax.dtypes.canonicalize_dtype("int64")
    if count > numpy.iinfo(dtype).max:
        raise ValueError(f"x has {count} elements, which needs 64-bit indices: set jax_enable_x64")
    columns = [indices[:, axis].astype(dtype) for axis in range(len(shape))]
    number, inside = jnp.zeros(indices.shape[0], dtype), jnp.ones(indices.shape[0], bool)
    for column, size in zip(columns, shape):
        number = number * size + column
        inside &= (column >= 0) & (column < size)
    return jnp.where(inside, number, count)


def _coordinates(numbers: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Indices of shape (nse, dimensions) from row-major numbers. Padding gets the shape as its index."""
    columns, padding = [], numbers >= math.prod(shape)
    for size in reversed(shape):
        columns.append(jnp.where(padding, size, numbers % size))
        numbers = numbers // size
    return jnp.stack(columns[::-1], axis=-1).astype(dtype)
