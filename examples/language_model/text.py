# SPDX-License-Identifier: BSD-3-Clause
"""Text files as word numbers, and the batches of each rank."""

from __future__ import annotations

import collections
import math
from typing import Sequence

import torch

UNKNOWN = "<unk>"


def read_words(paths: Sequence[str]) -> list[str]:
    """Returns the words of files, separated by white space."""
    words: list[str] = []
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            words += file.read().split()
    return words


class Text:
    """A text and its vocabulary. Words are numbered by descending frequency.

    Args:
        paths: files, the same on all ranks.
        most: largest size of the vocabulary; rarer words are replaced by UNKNOWN. None for no limit.
    """

    def __init__(self, paths: Sequence[str], most: int | None = None) -> None:
        words = read_words(paths)
        counts = collections.Counter(words)
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        if most is not None and len(ordered) > most:
            kept = set(ordered[: most - 1])
            words = [word if word in kept else UNKNOWN for word in words]
            return self._number(words, ordered[: most - 1] + [UNKNOWN])
        self._number(words, ordered)

    def _number(self, words: list[str], ordered: list[str]) -> None:
        numbers = {word: number for number, word in enumerate(ordered)}
        self.words = torch.tensor([numbers[word] for word in words])
        self.vocabulary = len(ordered)


class Batches:
    """The batches of one rank. The text is split into streams * ranks streams of equal length, read in
    parallel.

    Args:
        words: the text.
        streams: streams of each rank.
        length: words of each stream in a step.
        rank, ranks: this rank, and the number of ranks.

    Raises:
        ValueError: the text is too short for one step.
    """

    def __init__(self, words: torch.Tensor, streams: int, length: int, rank: int, ranks: int) -> None:
        columns = streams * ranks
        rows = len(words) // columns
        self.count = (rows - 1) // length
        if self.count < 1:
            raise ValueError(f"{len(words)} words are too few for {columns} streams of {length + 1}")
        lying = words[: rows * columns].view(columns, rows).t()
        self._streams = lying[:, rank * streams : (rank + 1) * streams].contiguous()
        self._length = length

    def __getitem__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the words of a step and the next word of each; both of shape (length, streams)."""
        begin = step % self.count * self._length
        end = begin + self._length
        return self._streams[begin:end], self._streams[begin + 1 : end + 1]


class Sampler:
    """Samples words by Zipf's law: the probability of word k is proportional to log((k + 2) / (k + 1)).

    Samples differ between ranks and steps, and are reproducible.
    """

    def __init__(self, vocabulary: int, samples: int, seed: int, rank: int) -> None:
        self._vocabulary, self._samples = vocabulary, samples
        self._seed, self._rank = seed, rank

    def draw(self, step: int) -> torch.Tensor:
        """Returns the sampled words of a step, with repetitions."""
        generator = torch.Generator().manual_seed((self._seed * 1_000_003 + step) * 1_009 + self._rank)
        uniform = torch.rand(self._samples, generator=generator, dtype=torch.float64)
        drawn = torch.exp(uniform * math.log(self._vocabulary + 1)).long() - 1
        return drawn.clamp_(0, self._vocabulary - 1)

    def log_expected(self, words: torch.Tensor) -> torch.Tensor:
        """Returns the logarithm of the expected number of samples of each word."""
        numbers = words.double()
        share = torch.log((numbers + 2) / (numbers + 1)) / math.log(self._vocabulary + 1)
        return torch.log(share * self._samples).float()
