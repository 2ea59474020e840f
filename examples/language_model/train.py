# SPDX-License-Identifier: BSD-3-Clause
"""Train a language model on a text with data parallelism over all ranks of an MPI job.

    mpirun -n 4 python3 train.py --text FILE --communication mpix_sparse
    mpirun -n 4 python3 train.py --text FILE --compare --plot FILE.svg --json FILE.jsonl

The second command trains three models with equal initial weights, alternating every few steps. Each model
sums its gradients in another way."""

from __future__ import annotations

import argparse
import time

import torch
import torch.distributed

import mpix_sparse
import mpix_sparse.torch as hvd
from communication import SHARDED, WAYS, way_of
from measure import Measured, Step, plot, print_table, show_progress, write_json
from model import LanguageModel
from options import parse
from text import Batches, Sampler, Text


class Trainer:
    """A model, and one way to communicate."""

    def __init__(self, name: str, options: argparse.Namespace, text: Text) -> None:
        self.name = name
        self.steps: list[Step] = []
        way = way_of(name, options.compression, options.ratio)
        torch.manual_seed(options.seed)
        self._model = LanguageModel(text.vocabulary, options.width, options.hidden, way.sparse)
        hvd.broadcast_parameters(self._model.state_dict(), root_rank=0)
        # A positive initial value keeps rounding errors from dominating the first steps of tiny gradients.
        optimizer = torch.optim.Adagrad(
            self._model.parameters(), lr=options.rate, initial_accumulator_value=1e-5
        )
        self._communication = way(self._model, optimizer)
        self._batches = Batches(text.words, options.batch, options.length, hvd.rank(), hvd.size())
        self._sampler = Sampler(text.vocabulary, options.samples, options.seed, hvd.rank())
        self._state = None

    def _backward(self) -> float:
        number = len(self.steps)
        if number % self._batches.count == 0:
            self._state = None
        drawn = self._sampler.draw(number)
        loss, self._state = self._model.loss(*self._batches[number], drawn, self._sampler, self._state)
        # Divided by the number of ranks, so that sums of gradients are means.
        (loss / hvd.size()).backward()
        return loss.item()

    def step(self) -> Step:
        """Make one step. Collective. Barriers separate the time of waiting from the time of the transfer."""
        mpix_sparse.barrier()
        begin = time.perf_counter()
        self._communication.optimizer.zero_grad(set_to_none=True)
        loss = self._backward()
        ready = time.perf_counter()
        mpix_sparse.barrier()
        met = time.perf_counter()
        self._communication.reduce()
        reduced = time.perf_counter()
        self._communication.step()
        whole = time.perf_counter() - begin
        self.steps.append(Step(loss, whole, met - ready, reduced - met + self._communication.early_seconds))
        return self.steps[-1]

    def state_bytes(self) -> int:
        """Returns the memory of this rank's optimizer state."""
        states = self._communication.optimizer.state.values()
        tensors = [each for state in states for each in state.values() if isinstance(each, torch.Tensor)]
        storages = [getattr(each, "untyped_storage", each.storage)() for each in tensors]
        return sum(storage.nbytes() for storage in storages)

    def touched(self) -> float:
        """Returns the share of the tables' rows that this rank's first batch uses."""
        words, following = self._batches[0]
        outputs = torch.cat([following.flatten(), self._sampler.draw(0)])
        rows = len(words.unique()) + len(outputs.unique())
        return rows / sum(len(table) for table in self._model.tables)

    def sizes(self) -> tuple[int, int]:
        """Returns the number of parameters in the tables, and of all others."""
        tables = sum(table.numel() for table in self._model.tables)
        return tables, sum(parameter.numel() for parameter in self._model.parameters()) - tables


def describe(options: argparse.Namespace, text: Text, trainer: Trainer) -> dict[str, object]:
    """Returns the setup, for the JSON output."""
    tables, rest = trainer.sizes()
    return {
        "ranks": hvd.size(),
        "torch": torch.__version__,
        **vars(options),
        "words": len(text.words),
        "vocabulary": text.vocabulary,
        "parameters_of_tables": tables,
        "other_parameters": rest,
        "rows_touched": trainer.touched(),
    }


def train(trainers: list[Trainer], options: argparse.Namespace) -> None:
    """Make all steps, alternating between the trainers."""
    words = options.batch * options.length * hvd.size()
    done = 0
    for begin in range(0, options.steps, options.turn):
        for trainer in trainers:
            for _ in range(begin, min(begin + options.turn, options.steps)):
                step = trainer.step()
                done += 1
                if hvd.rank() == 0 and not options.quiet:
                    show_progress(trainer.name, done, options.steps * len(trainers), step, words)


def main(arguments: list[str] | None = None) -> list[Measured]:
    """Train, print the measurements and return them."""
    options = parse(__doc__.splitlines()[0], arguments)
    torch.set_num_threads(options.threads)
    hvd.init()
    text = Text(options.text, options.vocabulary)
    options.samples = options.samples or max(1, text.vocabulary // 100)
    names = list(WAYS) if options.compare else [options.communication]
    names += [SHARDED] * options.shard_state
    trainers = [Trainer(name, options, text) for name in names]
    setup = describe(options, text, trainers[0])
    if hvd.rank() == 0:
        print(
            f"{setup['words']:,} words, {setup['vocabulary']:,} different ones; "
            f"{setup['parameters_of_tables']:,} numbers in tables, {setup['other_parameters']:,} others; "
            f"a batch touches {100 * setup['rows_touched']:.2f} % of the tables' rows",
            flush=True,
        )
    train(trainers, options)
    words = options.batch * options.length * hvd.size()
    measured = [Measured(each.name, each.steps, words, each.state_bytes()) for each in trainers]
    if hvd.rank() == 0:
        report(options, setup, measured)
    return measured


def report(options: argparse.Namespace, setup: dict[str, object], measured: list[Measured]) -> None:
    """Print the table, and write the files given by options."""
    skip = min(options.skip, options.steps - 1)
    print_table([way.summary(skip) for way in measured])
    for way in measured[1:]:
        off = abs(way.loss - measured[0].loss).max()
        print(f"losses of {way.name} are at most {off:.2g} off those of {measured[0].name}")
    if options.json:
        write_json(options.json, setup, measured, skip)
    if options.plot:
        print(plot(options.plot, measured, skip))


if __name__ == "__main__":
    main()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    hvd.shutdown()
