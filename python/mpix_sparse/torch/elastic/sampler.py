# SPDX-License-Identifier: BSD-3-Clause
"""Samples of a data set, divided among the ranks, that can be continued after an error."""

from __future__ import annotations

import math
import random
from typing import Any, Iterator

import torch

from .._world import rank, size


class ElasticSampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
    """Draws the samples of a data set that are left in an epoch, each on one rank.

    Call record_batch() after each batch, and set_epoch() at the end of each epoch. In a TorchState it goes
    on, after a restore, with the samples that were left at the last commit.

    Args:
        dataset: a data set of constant size.
        shuffle: True to shuffle samples in each epoch.
        seed: the seed of the shuffle; the same on all ranks.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch with all samples."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Record that each rank has processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        """The epoch and the number of samples that all ranks have processed in it."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Go on from a state."""
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Share the samples that are left among the ranks."""
        self.num_replicas, self.rank = size(), rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        """This rank's samples. Some are drawn twice if ranks could not share them equally."""
        left = self.remaining_indices
        padded = [left[i % len(left)] for i in range(self.total_size)]
        return iter(padded[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
