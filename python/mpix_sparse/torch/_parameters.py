# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of a model's parameters between ranks."""

from __future__ import annotations

import itertools
import zlib
from typing import Any, Sequence

import torch

from ._agree import agree
from ._gather import allgather_object
from ._tensors import type_of
from ._world import world


def _describe(name: str, tensor: torch.Tensor) -> tuple[str, str]:
    layout = "" if tensor.layout == torch.strided else f" in layout {tensor.layout}"
    return name, f"{type_of(tensor)} of shape {tuple(tensor.shape)}{layout}"


def compare_parameters(tensors: Sequence[tuple[str, torch.Tensor]]) -> None:
    """Check that all ranks have the same parameters. Collective; blocks.

    Args:
        tensors: names and tensors, in the order of their broadcasts.

    Raises:
        ValueError: a name, shape or type differs between ranks; on all ranks, and the text names the
            parameter.
    """
    mine = [_describe(name, tensor) for name, tensor in tensors]
    found = agree("broadcast_parameters()", "", world(), zlib.crc32(repr(mine).encode()))
    if found.count(found[0]) != len(found):
        raise ValueError(_difference(allgather_object(mine)))


def _difference(models: Sequence[Sequence[tuple[str, str]]]) -> str:
    """The first difference from the model of rank 0, as a sentence."""
    for rank, model in enumerate(models):
        for number, pair in enumerate(itertools.zip_longest(models[0], model)):
            if pair[0] != pair[1]:
                return _sentence(number, pair, rank)
    return "the parameters differ between ranks"


def _sentence(number: int, pair: Sequence[Any], rank: int) -> str:
    mine, theirs = (described or ("", "missing") for described in pair)
    if mine[0] and theirs[0] and mine[0] != theirs[0]:
        return f"parameter {number} is {mine[0]!r} on rank 0, and {theirs[0]!r} on rank {rank}"
    name = f"parameter {(mine[0] or theirs[0] or number)!r}"
    return f"{name} is {mine[1]} on rank 0, and {theirs[1]} on rank {rank}"
