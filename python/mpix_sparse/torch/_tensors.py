# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on their way into the library and back. Sums are made in host memory: tensors of a device are
copied."""

from __future__ import annotations

import ctypes
import functools
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from .. import Result, _types
from .._arrays import Array


@dataclass(frozen=True)
class Op:
    """A reduction: that of the library, and whether its outcome is divided by the number of ranks."""

    name: str
    reduction: str

    def divisor(self, ranks: int) -> int:
        """What the outcome is to be divided by."""
        return ranks if self.name == "Average" else 1


Average = Op("Average", "sum")
Sum = Op("Sum", "sum")
Min = Op("Min", "min")
Max = Op("Max", "max")
Product = Op("Product", "prod")
OPS = {op.name: op for op in (Average, Sum, Min, Max, Product)}


def type_of(tensor: torch.Tensor) -> str:
    """The name of a tensor's type."""
    return _name(tensor.dtype)


@functools.lru_cache(maxsize=None)
def _name(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")


def choose_op(average: bool | None, op: Op | None) -> Op:
    """The op of a call that may name it in the old way.

    Raises:
        ValueError: both are given, or op is none of this module's.
    """
    if average is not None and op is not None:
        raise ValueError("average and op are both given; op alone says it")
    chosen = op or (Sum if average is False else Average)
    if not isinstance(chosen, Op):
        raise ValueError(f"op is {chosen!r}; it must be Average, Sum, Min, Max or Product")
    return chosen


def refuse_other(tensor: Any) -> None:
    """Raise TypeError for what is neither a dense tensor nor a sparse COO one."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor is needed, not {type(tensor).__name__}")
    if tensor.layout not in (torch.strided, torch.sparse_coo):
        raise TypeError(
            f"a tensor of layout {tensor.layout} cannot be reduced; dense and sparse COO ones can"
        )


def refuse_average(tensor: torch.Tensor, op: Op) -> None:
    """Raise ValueError for an average of whole numbers."""
    if op is Average and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"there is no Average of {type_of(tensor)}; use Sum")


def scale_(tensor: torch.Tensor, factor: float, divisor: int = 1) -> torch.Tensor:
    """Multiply by a factor and divide, in place. Halves are computed in 32 bits, for not every CPU can."""
    if factor == 1 and divisor == 1:
        return tensor
    if tensor.dtype == torch.float16 and not tensor.is_cuda:
        return tensor.copy_(scale_(tensor.float(), factor, divisor))
    if factor != 1:
        tensor.mul_(factor)
    return tensor.div_(divisor) if divisor != 1 else tensor


def as_array(tensor: torch.Tensor) -> Array:
    """A tensor as the package takes arrays, without a detour."""
    shape, on_device = tuple(tensor.shape), tensor.is_cuda
    return Array(tensor, tensor.data_ptr(), type_of(tensor), shape, tensor.is_contiguous(), True, on_device)


def settle(tensor: torch.Tensor) -> None:
    """Wait until a tensor's device has done what PyTorch has asked of it: the library has streams of its
    own."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a dense tensor is contiguous memory of the host that holds its numbers: others are views that
    conjugate or negate."""
    return tensor.is_cpu and tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in contiguous memory of the host: the tensor itself where it is there.

    Raises:
        TypeError: it is sparse.
    """
    if tensor.layout != torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout} cannot be sent here; a dense one can")
    tensor = tensor.detach()
    return tensor if is_plain(tensor) else tensor.to("cpu").resolve_conj().resolve_neg().contiguous()


def strides_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The layout that a tensor has, or would if it had no gaps."""
    return torch.empty_like(tensor.detach(), device="meta").stride()


def laid_out_as(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The same numbers in the layout of another tensor of the shape: the tensor itself where it has that."""
    if tensor.stride() == strides_of(other):
        return tensor
    return torch.empty_like(other.detach(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def coordinates(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices and values of a sparse COO tensor, on the host; elements are numbered along its sparse
    dimensions."""
    indices = tensor._indices()
    flat = indices[0]
    for i in range(1, len(indices)):
        flat = flat * tensor.shape[i] + indices[i]
    return on_host(flat), on_host(tensor._values())


_unchecked: Any = getattr(  # PyTorch 1.13, and newer ones
    torch,
    "_sparse_coo_tensor_unsafe",
    functools.partial(torch.sparse_coo_tensor, check_invariants=False),
)


def sparse_of(indices: torch.Tensor, values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A sparse COO tensor of the shape and on the device of another, from indices that need no look."""
    return _unchecked(indices.to(like.device), values.to(like.device), like.shape)


def sparse_like(
    tensor: torch.Tensor, sparse_dim: int, result: Result, divisor: int = 1, factor: float = 1
) -> torch.Tensor:
    """A copy of a result, multiplied and divided, as a sparse tensor of the shape and device of a tensor."""
    nnz, indices, values = result.look()
    flat = _look(indices, (nnz,), torch.int64).clone()
    numbers = _look(values, (nnz, *tensor.shape[sparse_dim:]), tensor.dtype)
    made = sparse_of(_places(flat, tensor.shape[:sparse_dim]), _scaled(numbers, factor, divisor), tensor)
    return made._coalesced_(True)


def _places(flat: torch.Tensor, extents: torch.Size) -> torch.Tensor:
    """Numbers of elements as their indices in each dimension."""
    if len(extents) == 1:
        return flat.unsqueeze(0)
    places = []
    for extent in reversed(extents[1:]):
        places.append(flat % extent)
        flat = torch.div(flat, extent, rounding_mode="floor")
    return torch.stack([flat, *reversed(places)])


def _scaled(tensor: torch.Tensor, factor: float, divisor: int) -> torch.Tensor:
    """A new tensor with what scale_() makes of one, in one pass where there is one thing to do."""
    if factor == 1 and divisor != 1 and tensor.dtype != torch.float16:
        return tensor / divisor
    return scale_(tensor.clone(), factor, divisor)


_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_memory.restype = ctypes.py_object
_memory.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
_PYBUF_WRITE = 0x200  # PyTorch warns of memory that it may not write


def _look(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The library's memory as a tensor, to be read at once: it stays no longer than the result."""
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    size = math.prod(shape) * _types.item_size(_name(dtype))
    found = torch.frombuffer(_memory(address, size, _PYBUF_WRITE), dtype=dtype)
    return found if len(shape) == 1 else found.view(shape)


def from_numpy(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """A copy of a result's array, which it does not keep in use."""
    copy = numpy.array(array)
    return (
        torch.from_numpy(copy.view(numpy.int16)).view(dtype)
        if dtype == torch.bfloat16
        else torch.from_numpy(copy)
    )


def sparse_view(tensor: torch.Tensor, result: Result) -> torch.Tensor:
    """A result of rows as a sparse COO tensor of the shape of a tensor, in the result's own memory, which
    stays as long as the tensor does. Nobody may write to it."""
    values = result.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        indices = torch.from_numpy(result.indices).unsqueeze(0)
        if tensor.dtype == torch.bfloat16:
            rows = torch.from_numpy(values.view(numpy.int16)).view(tensor.dtype)
        else:
            rows = torch.from_numpy(values)
    return sparse_of(indices, rows, tensor)._coalesced_(True)
