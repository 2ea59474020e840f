# SPDX-License-Identifier: BSD-3-Clause
"""The model: an input embedding, an LSTM, and an output embedding.

The two tables hold nearly all parameters, and a batch uses few of their rows. A full softmax would use
every row of the second table, so the loss is a sampled softmax (Jean et al., 2015): the model distinguishes
each next word from sampled words, which are the same for the whole batch. Logits are corrected by the
expected number of samples of each word (Bengio and Senecal, 2008)."""

from __future__ import annotations

import torch

from text import Sampler

State = tuple[torch.Tensor, torch.Tensor]


class LanguageModel(torch.nn.Module):
    """Predicts the next word.

    Args:
        vocabulary: number of words.
        width: numbers in a row of each table.
        hidden: numbers in the LSTM's state.
        sparse: true for sparse gradients of the tables.
    """

    def __init__(self, vocabulary: int, width: int, hidden: int, sparse: bool) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, width, sparse=sparse)
        self.lstm = torch.nn.LSTM(width, hidden)
        # width - 1, since the last number of a row of the output table is the word's bias.
        self.projection = torch.nn.Linear(hidden, width - 1)
        self.outputs = torch.nn.Embedding(vocabulary, width, sparse=sparse)
        for table in (self.words, self.outputs):
            torch.nn.init.uniform_(table.weight, -0.05, 0.05)

    @property
    def tables(self) -> list[torch.nn.Parameter]:
        """The parameters whose gradients may be sparse."""
        return [self.words.weight, self.outputs.weight]

    def loss(
        self,
        words: torch.Tensor,
        following: torch.Tensor,
        drawn: torch.Tensor,
        sampler: Sampler,
        state: State | None,
    ) -> tuple[torch.Tensor, State]:
        """The mean loss of a batch, and the LSTM's state after it.

        Args:
            words, following: words and next words, of shape (length, streams); see Batches.
            drawn: sampled words; see Sampler.
            state: LSTM state after the previous batch; None for the first.
        """
        hidden, state = self.lstm(self.words(words), state)
        projected = self.projection(hidden).flatten(0, 1)
        context = torch.nn.functional.pad(projected, (0, 1), value=1.0)
        right = following.flatten()
        rows = self.outputs(torch.cat([right, drawn]))
        true_logits = (context * rows[: len(right)]).sum(1) - sampler.log_expected(right)
        drawn_logits = context @ rows[len(right) :].t() - sampler.log_expected(drawn)
        drawn_logits = drawn_logits.masked_fill(right[:, None] == drawn, -1e9)
        logits = torch.cat([true_logits[:, None], drawn_logits], 1)
        loss = torch.nn.functional.cross_entropy(logits, torch.zeros_like(right))
        return loss, (state[0].detach(), state[1].detach())
