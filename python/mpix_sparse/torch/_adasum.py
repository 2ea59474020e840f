# SPDX-License-Identifier: BSD-3-Clause
"""Adasum, the adaptive summation of Maleki et al., "Scaling Distributed Training with Adaptive Summation"
(MLSys 2021).

Two vectors a and b are combined to (1 - a·b / 2|a|²) a + (1 - a·b / 2|b|²) b: their sum if they are
orthogonal, their mean if they are equal. Ranks combine in a binary tree: in step k with the rank whose
number differs in bit k. Both ranks of a pair exchange whole vectors and compute the same bits. With P ranks
each rank sends n log2(P) elements, zeros included.
"""

from __future__ import annotations

import math
from typing import Sequence

import torch

from . import _collectives
from ._agree import agree
from ._tensors import on_host, scale_, type_of
from ._world import World

TAG = 0  # calls block, so that messages of two calls are never under way at once
TINY = math.sqrt(
    torch.finfo(torch.float64).tiny
)  # a vector with less than this squared norm is added as it is


def start_adasum(
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    ranks: World,
    scales: tuple[float, float] = (1, 1),
) -> None:
    """Combine dense tensors over all ranks into outputs, which may be the tensors; each has its own factors.
    Collective; blocks.

    Raises:
        NotImplementedError: the number of ranks is not a power of two.
        ValueError: a tensor is not dense or not of floats, or tensors or ops differ; on all ranks.
    """
    unfit = [tensor for tensor in tensors if tensor.is_sparse or not tensor.is_floating_point()]
    problem = f"Adasum is for dense tensors of floats, not {type_of(unfit[0])}" if unfit else ""
    described = ", ".join(f"{type_of(tensor)} of shape {tuple(tensor.shape)}" for tensor in tensors)
    agree(f"allreduce(Adasum, {described})", problem, ranks)
    if ranks.size & (ranks.size - 1):
        raise NotImplementedError(
            f"Adasum needs a number of ranks that is a power of two, and there are {ranks.size}"
        )
    for dtype in sorted({tensor.dtype for tensor in tensors}, key=str):
        alike = [i for i, tensor in enumerate(tensors) if tensor.dtype == dtype]
        flat = torch.cat([on_host(tensors[i]).reshape(-1) for i in alike])
        sizes = [tensors[i].numel() for i in alike]
        made = scale_(_over_ranks(scale_(flat, scales[0]), sizes, ranks), scales[1])
        for i, piece in zip(alike, made.split(sizes)):
            outputs[i].detach().copy_(piece.view(outputs[i].shape))


def _over_ranks(mine: torch.Tensor, sizes: list[int], ranks: World) -> torch.Tensor:
    """Combine consecutive vectors of these sizes over all ranks."""
    distance = 1
    while distance < ranks.size:
        partner, theirs = ranks.rank ^ distance, torch.empty_like(mine)
        works = [
            _collectives.receive(theirs, partner, TAG, ranks.plain),
            _collectives.send(mine, partner, TAG, ranks.plain),
        ]
        for work in works:
            work.wait()
        pair = (mine, theirs) if ranks.rank < partner else (theirs, mine)
        mine = torch.cat([combine(*pieces) for pieces in zip(*(each.split(sizes) for each in pair))])
        distance *= 2
    return mine


def combine(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The combination of two vectors of one type; products are summed in 64 bits."""
    a, b = first.double(), second.double()
    product, squares = float(a @ b), (float(a @ a), float(b @ b))
    of_a, of_b = (1 - product / square / 2 if square >= TINY else 1.0 for square in squares)
    return (of_a * a + of_b * b).to(first.dtype)
