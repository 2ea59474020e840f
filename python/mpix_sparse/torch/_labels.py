# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions, for errors, and labels of allreduces. The C library compares the labels."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ._agree import AVERAGE, label_of
from ._tensors import Average, Op, type_of


def describe_dense(op: str, name: str, count: int, shape: torch.Size | tuple[()] = ()) -> str:
    """The description of a call on a dense tensor with elements of a type, and with a shape if ranks compare
    it."""
    size = f"shape {tuple(shape)}" if len(shape) > 1 else f"{count} elements"
    return f"allreduce({op}, {name} of {size})"


def describe_sparse(op: str, name: str, shape: torch.Size, sparse_dim: int) -> str:
    """The description of a call on a sparse tensor with values of a type."""
    dimensions = f" with {sparse_dim} sparse dimensions" if sparse_dim < len(shape) else ""
    return f"allreduce({op}, sparse {name} of shape {tuple(shape)}{dimensions})"


def describe_rows(tensor: torch.Tensor) -> str:
    """The description of the rows of a tensor, whose number may differ between ranks."""
    if tensor.dim() < 2:
        return f"numbers of type {type_of(tensor)}"
    return f"rows of {type_of(tensor)} of shape {tuple(tensor.shape[1:])}"


def dense_label(op: Op) -> Any:
    """The label of a call on a dense tensor; None if it needs none."""
    return AVERAGE if op is Average else None


@functools.lru_cache(maxsize=1024)
def shape_label(op: Op, shape: torch.Size) -> Any:
    """The label of a call on a dense tensor with two or more dimensions, whose shape ranks compare."""
    return label_of(hash((op is Average, *shape)))


def shape_group(tensor: torch.Tensor, op: Op) -> tuple[Any, Any] | None:
    """The argument `group` of start_allreduce() for a call in which ranks compare the shape of a tensor; None
    if the number of elements, or another label, tells it."""
    if tensor.is_sparse or tensor.dim() < 2:
        return None
    text = describe_dense, op.name, type_of(tensor), tensor.numel(), tensor.shape
    return text, shape_label(op, tensor.shape)


def sparse_label(op: Op, shape: torch.Size, sparse_dim: int) -> Any:
    """The label of a call on a sparse tensor; None if it needs none. The C library compares count and row,
    which are equal for some different shapes."""
    if sparse_dim == 1 and len(shape) <= 2:
        return dense_label(op)
    return label_of(hash((op is Average, sparse_dim, *shape)))
