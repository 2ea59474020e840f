# SPDX-License-Identifier: BSD-3-Clause
"""Conversions between PyTorch tensors and the library's arrays. Reductions run in host memory, so tensors
on a device are copied."""

from __future__ import annotations

import ctypes
import functools
import math
import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from .. import Result, _types
from .._arrays import Array, memory
from .._coo import DirectElements
from ._numbering import INT64, Numbering, numbering, rows_of

SINGLE_THREAD_BYTES = 1 << 16  # limit for copies that PyTorch does not make, which starts threads
_STRIDED = torch.strided


@dataclass(frozen=True)
class Op:
    """A reduction: its name, and the library's op. Average also divides by the number of ranks."""

    name: str
    reduction: str

    def divisor(self, ranks: int) -> int:
        """The divisor of the reduced values."""
        return ranks if self.name == "Average" else 1


Average = Op("Average", "sum")
Sum = Op("Sum", "sum")
Min = Op("Min", "min")
Max = Op("Max", "max")
Product = Op("Product", "prod")
Adasum = Op("Adasum", "")  # not a reduction of the library
OPS = {op.name: op for op in (Average, Sum, Min, Max, Product, Adasum)}


def type_of(tensor: torch.Tensor) -> str:
    """The name of a tensor's type, without its prefix."""
    return name_of(tensor.dtype)


@functools.lru_cache(maxsize=None)
def name_of(dtype: torch.dtype) -> str:
    """The name of a type, without its prefix."""
    return str(dtype).replace("torch.", "")


def choose_op(average: bool | None, op: Op | None) -> Op:
    """The op of a call, from op or from Horovod's older argument average.

    Raises:
        ValueError: both are given, or op is not an Op.
    """
    if average is not None and op is not None:
        raise ValueError("average and op are both given; op alone says it")
    chosen = op or (Sum if average is False else Average)
    if not isinstance(chosen, Op):
        raise ValueError(f"op is {chosen!r}; it must be Average, Sum, Min, Max, Product or Adasum")
    return chosen


def refuse_other(tensor: Any) -> None:
    """Raise TypeError unless this is a dense or sparse COO tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor is needed, not {type(tensor).__name__}")
    if not (tensor.is_sparse or tensor.layout is _STRIDED):
        raise TypeError(
            f"a tensor of layout {tensor.layout} cannot be reduced; dense and sparse COO ones can"
        )


def refuse_average(tensor: torch.Tensor, op: Op) -> None:
    """Raise ValueError for an average of integers."""
    if op is Average and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"there is no Average of {type_of(tensor)}; use Sum")


def refuse_factors(tensor: torch.Tensor, factors: tuple[float, float]) -> None:
    """Refuse factors of a reduction that PyTorch would refuse, the second one after the call."""
    if factors == (1, 1):
        return
    for factor in factors:
        if isinstance(factor, torch.Tensor) and factor.numel() == 1:
            factor = factor.item()
        if not isinstance(factor, numbers.Real):
            raise TypeError(f"prescale_factor and postscale_factor are numbers, not {type(factor).__name__}")
        takes_fractions = tensor.dtype.is_floating_point or tensor.dtype.is_complex
        if factor != 1 and not (takes_fractions or isinstance(factor, numbers.Integral)):
            raise TypeError(f"a factor of {type_of(tensor)} is {factor!r}, which is not an integer")


def scale_(tensor: torch.Tensor, factor: float, divisor: int = 1) -> torch.Tensor:
    """Multiply by a factor and divide, in place. float16 is computed in 32 bits, since some CPUs cannot."""
    if factor == 1 and divisor == 1:
        return tensor
    if tensor.dtype == torch.float16 and not tensor.is_cuda:
        return tensor.copy_(scale_(tensor.float(), factor, divisor))
    if factor != 1:
        tensor.mul_(factor)
    return tensor.div_(divisor) if divisor != 1 else tensor


def as_array(tensor: torch.Tensor) -> Array:
    """Describe a tensor as an Array, without _arrays.view()."""
    where = tensor, tensor.data_ptr(), name_of(tensor.dtype)
    return Array(*where, tuple(tensor.shape), tensor.is_contiguous(), True, tensor.is_cuda)


def wait_for_stream(tensor: torch.Tensor) -> None:
    """Wait for PyTorch's current stream on a tensor's device, since the library uses its own streams."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def is_plain(tensor: torch.Tensor) -> bool:
    """True if a dense tensor is contiguous host memory with its numbers, not a lazily conjugated or negated
    view."""
    return tensor.is_cpu and tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


def detached(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without a history of its gradient: itself if it has none."""
    return tensor.detach() if tensor.requires_grad else tensor


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in contiguous host memory: itself if it is plain, else a copy.

    Raises:
        TypeError: the tensor is sparse.
    """
    if tensor.layout != torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout} cannot be sent here; a dense one can")
    tensor = detached(tensor)
    return tensor if is_plain(tensor) else tensor.to("cpu").resolve_conj().resolve_neg().contiguous()


def strides_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of a dense tensor of the same shape and dimension order, without gaps."""
    return torch.empty_like(tensor.detach(), device="meta").stride()


def laid_out_as(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The tensor with the strides of another one of its shape: itself if they are equal, else a copy."""
    if tensor.stride() == strides_of(other):
        return tensor
    return torch.empty_like(other.detach(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def coordinates(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Flat indices and values of a sparse COO tensor, on the host. Elements are numbered along the sparse
    dimensions."""
    indices = tensor._indices()
    if len(indices) == 1:
        flat = indices[0]
    else:
        rows = rows_of(indices.cpu())
        flat = torch.from_numpy(numbering(tensor.shape[: len(rows)]).ravel(rows).view(INT64))
    return on_host(flat), on_host(tensor._values())


def elements_of(tensor: torch.Tensor, sparse_dim: int, factor: float) -> DirectElements:
    """The elements of a sparse COO tensor with coordinates(), and values that are multiplied by a factor."""
    indices, values = tensor._indices(), on_host(tensor._values())
    if factor != 1:
        values = scale_(values.clone(), factor)
    problem = ""
    if sparse_dim != 1:
        numbers, rows = numbering(tensor.shape[:sparse_dim]), rows_of(indices.cpu())
        problem = numbers.find_outside(rows)
        indices = torch.from_numpy(numbers.ravel(rows).view(INT64))
    elif not is_plain(indices):
        indices = on_host(indices[0])
    shape = values.shape
    where = indices.data_ptr(), values.data_ptr(), shape[0]
    made = DirectElements(*where, name_of(values.dtype), tuple(shape[1:]), (indices, values))
    made.problem = made.problem or problem
    return made


_unchecked: Any = getattr(  # in PyTorch 1.13; newer ones have the argument
    torch,
    "_sparse_coo_tensor_unsafe",
    functools.partial(torch.sparse_coo_tensor, check_invariants=False),
)


def sparse_of(
    indices: torch.Tensor, values: torch.Tensor, like: torch.Tensor, shape: Any = None
) -> torch.Tensor:
    """A sparse COO tensor with the device, and the shape unless given, of another, without a check of the
    indices."""
    if not like.is_cpu:
        indices, values = indices.to(like.device), values.to(like.device)
    return _unchecked(indices, values, shape or like.shape)


def _find_coalesced() -> Any:
    """The function that makes a coalesced tensor of indices, values and shape, without a check."""
    none = torch.empty(1, 0, dtype=torch.int64), torch.empty(0), (0,)
    make = functools.partial(torch.sparse_coo_tensor, check_invariants=False, is_coalesced=True)
    try:
        make(*none)
    except TypeError:  # in PyTorch 2.0 and older
        return _make_and_mark
    return make


def _make_and_mark(indices: torch.Tensor, values: torch.Tensor, shape: Any) -> torch.Tensor:
    return _unchecked(indices, values, shape)._coalesced_(True)


_coalesced = _find_coalesced()


def coalesced_of(
    indices: torch.Tensor, values: torch.Tensor, like: torch.Tensor, shape: Any = None
) -> torch.Tensor:
    """As sparse_of(), for indices that are ascending and different."""
    if not like.is_cpu:
        indices, values = indices.to(like.device), values.to(like.device)
    return _coalesced(indices, values, shape or like.shape)


def sparse_like(
    tensor: torch.Tensor, sparse_dim: int, result: Result, divisor: int = 1, factor: float = 1
) -> torch.Tensor:
    """Copy a result, scaled, to a sparse tensor with the shape and device of a tensor."""
    numbers, row = numbering(tensor.shape[:sparse_dim]), tensor.shape[sparse_dim:]
    return copy_result(tensor, numbers, row, result.contents(), divisor, factor)


def copy_result(
    tensor: torch.Tensor,
    numbers: Numbering,
    row: torch.Size,
    contents: tuple[int, int, int],
    divisor: int = 1,
    factor: float = 1,
) -> torch.Tensor:
    """As sparse_like().

    Args:
        numbers: of the elements along the sparse dimensions of the tensor.
        row: its dense dimensions.
        contents: those of a result.
    """
    nnz, indices, values = contents
    rows = _copy_indices(indices, nnz) if numbers.is_flat else numbers.unravel(indices, nnz)
    if factor == divisor == 1:
        made = _copy_memory(values, (nnz, *row), tensor.dtype)
    else:
        made = _scaled(values, (nnz, *row), tensor.dtype, factor, divisor)
    return _coalesced(rows, made, tensor.shape) if tensor.is_cpu else coalesced_of(rows, made, tensor)


def _copy_indices(address: int, nnz: int) -> torch.Tensor:
    """A tensor of one row with a copy of flat indices in the library's memory."""
    if not 0 < 8 * nnz <= SINGLE_THREAD_BYTES:
        return _copy_memory(address, (1, nnz), torch.int64)
    # NumPy takes less time for the shape than PyTorch.
    copy = bytearray(ctypes.string_at(address, 8 * nnz))
    return torch.from_numpy(numpy.ndarray((1, nnz), INT64, copy))


def _scaled(
    address: int, shape: tuple[int, ...], dtype: torch.dtype, factor: float, divisor: int
) -> torch.Tensor:
    """A new tensor as scale_() would compute it from the library's memory, in one pass if only the divisor
    differs from 1."""
    if factor == 1 and dtype != torch.float16:
        return view_memory(address, shape, dtype) / divisor
    return scale_(_copy_memory(address, shape, dtype), factor, divisor)


@functools.lru_cache(maxsize=None)
def _item_size(dtype: torch.dtype) -> int:
    return _types.item_size(name_of(dtype))


def _copy_memory(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor with a copy of the library's memory."""
    size = math.prod(shape) * _item_size(dtype)
    if size > SINGLE_THREAD_BYTES:
        return torch.empty(shape, dtype=dtype).copy_(view_memory(address, shape, dtype))
    if len(shape) == 1 and size > 0:  # the fastest way
        return torch.frombuffer(bytearray(ctypes.string_at(address, size)), dtype=dtype)
    made = torch.empty(shape, dtype=dtype)
    ctypes.memmove(made.data_ptr(), address, size)
    return made


def view_memory(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor over the library's memory, valid only as long as the result."""
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    size = math.prod(shape) * _types.item_size(name_of(dtype))
    # PyTorch warns about read-only memory.
    found = torch.frombuffer(memory(address, size, writable=True), dtype=dtype)
    return found if len(shape) == 1 else found.view(shape)


def from_numpy(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor with a copy of a result's array, which does not keep the result in use."""
    copy = numpy.array(array)
    return (
        torch.from_numpy(copy.view(numpy.int16)).view(dtype)
        if dtype == torch.bfloat16
        else torch.from_numpy(copy)
    )


def sparse_view(tensor: torch.Tensor, result: Result) -> torch.Tensor:
    """A sparse COO tensor with the shape of a tensor, over the memory of a result of rows. It keeps the
    result alive and is read-only."""
    values = result.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        indices = torch.from_numpy(result.indices).unsqueeze(0)
        if tensor.dtype == torch.bfloat16:
            rows = torch.from_numpy(values.view(numpy.int16)).view(tensor.dtype)
        else:
            rows = torch.from_numpy(values)
    return coalesced_of(indices, rows, tensor)
