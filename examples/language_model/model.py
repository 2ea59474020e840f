# SPDX-License-Identifier: BSD-3-Clause
"""The model: a table of words, an LSTM, and a second table against which its output is held.

The tables are nearly all of it, and a batch touches few of their rows. A full softmax would touch every row
of the second, so the loss is a sampled one (Jean et al., 2015): each word that follows is told from some
that were drawn, the same ones for the whole batch, with logits corrected by how often each is drawn (Bengio
and Senecal, 2008)."""

from __future__ import annotations

import torch

from text import Sampler

State = tuple[torch.Tensor, torch.Tensor]


class LanguageModel(torch.nn.Module):
    """Predicts the next word.

    Args:
        vocabulary: words.
        width: numbers in a row of each table.
        hidden: numbers in the LSTM's state.
        sparse: whether the tables' gradients are sparse.
    """

    def __init__(self, vocabulary: int, width: int, hidden: int, sparse: bool) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, width, sparse=sparse)
        self.lstm = torch.nn.LSTM(width, hidden)
        # One number less: the last of a row of the second table is the word's bias.
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
            words, following: of shape (length, streams), as Batches has them.
            drawn: words to tell the following ones from, as the sampler drew them.
            state: after the batch before; None at the beginning.
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
