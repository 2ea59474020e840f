# SPDX-License-Identifier: BSD-3-Clause
"""A recommendation model with sparse gradients: embedding tables of very different lengths, the products of
their vectors, and small dense layers (Naumov et al., Deep Learning Recommendation Model for Personalization
and Recommendation Systems, 2019, arXiv:1906.00091). It learns which of made-up items are clicked.

    mpiexec -n 2 python3 dlrm.py

Output; the losses depend on the version of PyTorch:

    step 20: loss 0...
    step 40: loss 0...
    step 60: loss 0...
    the loss fell on 2 ranks
"""

from __future__ import annotations

from typing import Sequence

import torch

import mpix_sparse.torch as hvd

ROWS, WIDTH, NUMBERS, BATCH = [20_000, 5_000, 1_000, 100], 16, 8, 256


class Dlrm(torch.nn.Module):
    """Predicts if an item is clicked: the logarithm of the odds.

    Args:
        rows: rows of each table.
        width: numbers in a row.
        numbers: numbers that an item has beside one row of each table.
        sparse: true for sparse gradients of the tables.
    """

    def __init__(self, rows: Sequence[int], width: int, numbers: int, sparse: bool = True) -> None:
        super().__init__()
        self.embeddings = torch.nn.ModuleList(torch.nn.Embedding(n, width, sparse=sparse) for n in rows)
        for table in self.embeddings:
            torch.nn.init.normal_(table.weight, std=0.3)
        self.bottom = torch.nn.Sequential(torch.nn.Linear(numbers, width), torch.nn.ReLU())
        pairs = len(rows) * (len(rows) + 1) // 2
        self.top = torch.nn.Sequential(
            torch.nn.Linear(width + pairs, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )

    @property
    def tables(self) -> list[torch.nn.Parameter]:
        """The parameters whose gradients may be sparse."""
        return [table.weight for table in self.embeddings]

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        low = self.bottom(numbers)
        rows = [table(categories[:, i]) for i, table in enumerate(self.embeddings)]
        vectors = torch.stack([low, *rows], 1)
        first, second = torch.triu_indices(vectors.shape[1], vectors.shape[1], offset=1)
        products = (vectors @ vectors.transpose(1, 2))[:, first, second]
        return self.top(torch.cat([low, products], 1)).squeeze(1)


class Clicks:
    """Made-up items, of which those with frequent categories and large numbers are clicked. As in logs of
    real clicks, few categories are frequent."""

    def __init__(self, rows: Sequence[int], numbers: int, seed: int) -> None:
        self._rows, self._numbers = torch.tensor(rows), numbers
        self._random = torch.Generator().manual_seed(seed)

    def draw(self, batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns numbers, categories and clicks of a batch."""
        numbers = torch.rand(batch, self._numbers, generator=self._random)
        rare = torch.rand(batch, len(self._rows), generator=self._random)
        clicked = numbers.mean(1) - rare.mean(1) + 0.05 * torch.randn(batch, generator=self._random) > 0
        return numbers, (rare**4 * self._rows).long(), clicked.float()


def main() -> None:
    hvd.init()
    torch.manual_seed(1)
    model, clicks = Dlrm(ROWS, WIDTH, NUMBERS), Clicks(ROWS, NUMBERS, seed=hvd.rank())
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adagrad(model.parameters(), lr=0.05), named_parameters=model.named_parameters()
    )
    losses = []
    for step in range(60):
        numbers, categories, clicked = clicks.draw(BATCH)
        optimizer.zero_grad()
        odds = model(numbers, categories)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(odds, clicked)
        loss.backward()  # starts to sum gradients; those of the tables as rows
        optimizer.step()
        losses.append(loss.item())
        if hvd.rank() == 0 and step % 20 == 19:
            print(f"step {step + 1}: loss {sum(losses[-20:]) / 20:.3f}")
    if hvd.rank() == 0 and sum(losses[-20:]) < 0.8 * sum(losses[:20]):
        print(f"the loss fell on {hvd.size()} ranks")
    hvd.shutdown()


if __name__ == "__main__":
    main()
