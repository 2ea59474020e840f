# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions, for errors, and labels of allreduces. The C library compares the labels."""

from __future__ import annotations

from typing import Any

import torch

from ._agree import AVERAGE, label_of
from ._tensors import Average, Op


def describe_dense(op: str, name: str, count: int) -> str:
    """The description of a call on a dense tensor with elements of a type."""
    return f"allreduce({op}, {name} of {count} elements)"


def describe_sparse(op: str, name: str, shape: torch.Size, sparse_dim: int) -> str:
    """The description of a call on a sparse tensor with values of a type."""
    dimensions = f" with {sparse_dim} sparse dimensions" if sparse_dim < len(shape) else ""
    return f"allreduce({op}, sparse {name} of shape {tuple(shape)}{dimensions})"


def dense_label(op: Op) -> Any:
    """The label of a call on a dense tensor; None if it needs none."""
    return AVERAGE if op is Average else None


def sparse_label(op: Op, shape: torch.Size, sparse_dim: int) -> Any:
    """The label of a call on a sparse tensor; None if it needs none. The C library compares count and row,
    which are equal for some different shapes."""
    if sparse_dim == 1 and len(shape) <= 2:
        return dense_label(op)
    return label_of(hash((op is Average, sparse_dim, *shape)))
