# SPDX-License-Identifier: BSD-3-Clause
"""Batch normalization with the mean and variance of all ranks' batches."""

from __future__ import annotations

from typing import Any

import torch

from ._allreduce import allreduce
from ._collective import collective
from ._gather import start_allgather
from ._tensors import Sum
from ._world import size, world


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Batch normalization whose statistics, in training, are those of the batches of all ranks together.

    The forward pass in training is collective, and so is its backward pass. Batches may have different sizes
    on each rank, and may be empty on some. Inputs are on the CPU or a device, of shape (N, C) or (N, C, …).

    Args:
        num_features, eps, momentum, affine, track_running_stats: as for torch.nn.BatchNorm1d.
    """

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if not isinstance(input, torch.Tensor):
            raise TypeError(f"a tensor is needed, not {type(input).__name__}")
        if input.dim() < 2:
            raise ValueError(f"the input has {input.dim()} dimensions; it needs 2 or more")
        if input.shape[1] != self.num_features:
            raise ValueError(
                f"the input has {input.shape[1]} channels, and num_features is {self.num_features}"
            )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize a batch. Collective in training, if there are several ranks.

        Raises:
            ValueError: the input has fewer than 2 dimensions, or not num_features channels, or channels
                differ between ranks. On all ranks, if the call is collective.
        """
        if size() == 1 or not (self.training or self.running_mean is None):
            return super().forward(input)
        return self._normalize(input)

    @collective
    def _normalize(self, input: torch.Tensor) -> torch.Tensor:
        """forward() with the statistics of all ranks."""
        self._check_input_dim(input)
        by_channel = input.transpose(0, 1).reshape(input.shape[1], -1)
        normal, mean, variance, count = _Normalize.apply(by_channel, self.eps)
        if self.training and self.track_running_stats:
            self._update(mean, variance, float(count))
        shape = 1, -1, *[1] * (input.dim() - 2)
        turned = normal.view(input.shape[1], input.shape[0], *input.shape[2:]).transpose(0, 1)
        if self.weight is None:
            return turned.to(input.dtype)
        return (turned * self.weight.view(shape) + self.bias.view(shape)).to(input.dtype)

    @torch.no_grad()
    def _update(self, mean: torch.Tensor, variance: torch.Tensor, count: float) -> None:
        """Add a batch to the running mean and variance, as PyTorch does."""
        self.num_batches_tracked.add_(1)
        factor = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        for running, value in (
            (self.running_mean, mean),
            (self.running_var, variance * count / max(count - 1, 1)),
        ):
            running.lerp_(value.to(running.dtype), factor)


class _Normalize(torch.autograd.Function):
    """Subtract the mean of all ranks and divide by their standard deviation, for each row. Computes in 32
    bits, or 64."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, eps: float) -> Any:
        values = rows if rows.dtype == torch.float64 else rows.float()
        mean, variance, count = _over_ranks(values)
        deviation = (variance + eps).sqrt()
        normal = (values - mean.to(values.dtype)[:, None]) / deviation.to(values.dtype)[:, None]
        ctx.save_for_backward(normal, deviation.to(values.dtype))
        ctx.count = float(count)
        ctx.mark_non_differentiable(mean, variance, count)
        return normal, mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, *unused: Any) -> Any:
        normal, deviation = ctx.saved_tensors
        sums = torch.stack([gradient.sum(1), (gradient * normal).sum(1)])
        of_gradient, of_product = allreduce(sums, op=Sum) / ctx.count
        return (gradient - of_gradient[:, None] - normal * of_product[:, None]) / deviation[:, None], None


def _over_ranks(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean and variance of each row over all ranks, and the number of values in a row, in 64 bits. Squares
    are those of differences to each rank's mean, which does not lose digits. Collective; blocks."""
    count = rows.shape[1]
    mean = rows.double().sum(1) / max(count, 1)
    squares = (rows.double() - mean[:, None]).square().sum(1)
    mine = torch.cat([mean, squares, mean.new_tensor([count])])
    text = f"SyncBatchNorm of {len(mean)} channels"
    (work,), _ = start_allgather([mine[None]], world(), text)
    means, squares, counts = work.wait().split([len(mean), len(mean), 1], 1)
    total = counts.sum()
    whole = (means * counts).sum(0) / total
    variance = (squares.sum(0) + ((means - whole).square() * counts).sum(0)) / total
    return whole, variance, total
