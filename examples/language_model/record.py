# SPDX-License-Identifier: BSD-3-Clause
"""Write which rows of a table each rank's gradient has in each step of train.py: a trace of mpix_sparse_perf.

    python3 record.py --text FILE --ranks 16 --table input >input.trace
    mpirun -n 16 mpix_sparse_perf --workload trace:input.trace

Nothing is trained: the rows follow from the text, and from the words that are sampled. The table `input` has
the words of a batch; `output` has those that follow, and the sampled ones."""

from __future__ import annotations

import argparse
import sys
from typing import Iterator

import torch
from text import Batches, Sampler, Text
from values import positive, readable


def rows_of(table: str, text: Text, options: argparse.Namespace, rank: int) -> Iterator[torch.Tensor]:
    """The rows of a rank, step by step, ascending."""
    batches = Batches(text.words, options.batch, options.length, rank, options.ranks)
    sampler = Sampler(text.vocabulary, max(1, text.vocabulary // 100), options.seed, rank)
    for step in range(options.steps):
        words, following = batches[step]
        if table == "output":
            words = torch.cat([following.flatten(), sampler.draw(step)])
        yield words.unique()


def lines_of(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the trace."""
    text = Text(options.text, options.vocabulary)
    yield "mpix_sparse_trace 1"
    yield f"# {options.table} table: {options.batch} x {options.length} words in a batch"
    yield f"count {text.vocabulary}"
    yield f"row {options.width}"
    for rank in range(options.ranks):
        for step, rows in enumerate(rows_of(options.table, text, options, rank)):
            yield f"set {step} {rank} {' '.join(map(str, rows.tolist()))}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--text", nargs="+", type=readable, required=True, metavar="FILE", help="words divided by spaces")
    add("--table", choices=["input", "output"], default="input", help="of the two tables [%(default)s]")
    add("--ranks", type=positive, default=16, help="that train [%(default)s]")
    add("--steps", type=positive, default=50, help="of the training [%(default)s]")
    add("--batch", type=positive, default=32, help="streams of text that a rank reads at once [%(default)s]")
    add("--length", type=positive, default=20, help="words of each stream in a step [%(default)s]")
    add("--width", type=positive, default=512, help="numbers of a row [%(default)s]")
    add("--vocabulary", type=positive, help="most words to know; the rest counts as one [all of the text]")
    add("--seed", type=int, default=1, help="of the words drawn [%(default)s]")
    for line in lines_of(parser.parse_args(arguments)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
