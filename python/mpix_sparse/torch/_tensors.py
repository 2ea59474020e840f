# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on their way into the library and back. It works on host memory: tensors of a device are copied."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from .. import Result


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


def type_of(tensor: torch.Tensor) -> str:
    """The name of a tensor's type."""
    return str(tensor.dtype).replace("torch.", "")


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


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in contiguous memory of the host: the tensor itself where it is there."""
    return tensor.detach().to("cpu").contiguous()


def coordinates(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices and values of a sparse COO tensor, on the host; elements are numbered along its sparse
    dimensions."""
    indices = tensor._indices()
    flat = indices[0]
    for extent, more in zip(tensor.shape[1 : tensor.sparse_dim()], indices[1:]):
        flat = flat * extent + more
    return on_host(flat), on_host(tensor._values())


def sparse_like(tensor: torch.Tensor, sparse_dim: int, result: Result) -> torch.Tensor:
    """A result as a sparse COO tensor of the shape, type and device of a tensor."""
    flat = from_numpy(result.indices, torch.int64)
    extents = list(tensor.shape[:sparse_dim])
    places = []
    for extent in reversed(extents[1:]):
        places.append(flat % extent)
        flat = torch.div(flat, extent, rounding_mode="floor")
    indices = torch.stack([flat, *reversed(places)])
    values = from_numpy(result.values, tensor.dtype)
    made = torch.sparse_coo_tensor(indices, values, tensor.shape, device=tensor.device)
    return made._coalesced_(True)


def from_numpy(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """A copy of a result's array, which it does not keep in use."""
    if dtype == torch.bfloat16:
        return torch.from_numpy(numpy.array(array).view(numpy.int16)).view(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(array).clone()
