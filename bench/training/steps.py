# SPDX-License-Identifier: BSD-3-Clause
"""Step times of data-parallel training with four ways to sum the gradients of tables, in turns.
bench/train runs this program on emulated hosts."""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import sys
import time
from typing import Any

import numpy
import torch

import mpix_sparse

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(TOP / "examples" / "language_model"), str(TOP / "examples" / "python")]

import dlrm  # noqa: E402
import model as language  # noqa: E402
from text import Batches, Sampler, Text  # noqa: E402
from overlap import Span, Sums  # noqa: E402

# Ways, and the scheme that sums tables; all other parameters are summed by MPI_Allreduce.
WAYS = {
    "dense": "dense",
    "AGsparse": "allgather",
    "recursive_doubling": "recursive_doubling",
    "auto": "auto",
}
TURN = 4  # steps of a sparse way for one of dense: auto tries schemes in its first calls of a tensor
ROWS, NUMBERS = [100_000, 30_000, 10_000, 3_000, 1_000, 300, 100, 30], 13  # of the recommendation model


class LanguageModel:
    """examples/language_model: tables of 256 numbers a word, 32 streams of 20 words."""

    def __init__(self, options: argparse.Namespace, sparse: bool) -> None:
        rank, ranks = mpix_sparse.rank(), mpix_sparse.size()
        text = Text([options.text])
        self._batches = Batches(text.words, 32, 20, rank, ranks)
        self._sampler = Sampler(text.vocabulary, text.vocabulary // 100, 1, rank)
        self.module = language.LanguageModel(text.vocabulary, 256, 64, sparse)
        self.tables = [("words", self.module.words.weight), ("outputs", self.module.outputs.weight)]

    def loss(self, step: int) -> torch.Tensor:
        drawn = self._sampler.draw(step)
        return self.module.loss(*self._batches[step], drawn, self._sampler, None)[0]


class Recommendation:
    """examples/python/dlrm.py: eight tables of 64 numbers a row, 1024 items."""

    def __init__(self, options: argparse.Namespace, sparse: bool) -> None:
        self.module = dlrm.Dlrm(ROWS, 64, NUMBERS, sparse)
        self._clicks = dlrm.Clicks(ROWS, NUMBERS, seed=mpix_sparse.rank())
        self.tables = [(f"table {i + 1}", table) for i, table in enumerate(self.module.tables)]

    def loss(self, step: int) -> torch.Tensor:
        numbers, categories, clicked = self._clicks.draw(1024)
        odds = self.module(numbers, categories)
        return torch.nn.functional.binary_cross_entropy_with_logits(odds, clicked)


MODELS = {"language": LanguageModel, "dlrm": Recommendation}


def network_bytes() -> int:
    """Returns the bytes that this host has sent so far over eth0, with all headers; 0 without eth0."""
    with open("/proc/self/net/dev", encoding="ascii") as file:
        lines = [line.partition(":") for line in file]
    return sum(int(counts.split()[8]) for name, _, counts in lines if name.strip() == "eth0")


class Trainer:
    """A model that is trained in one way.

    Attributes:
        sent: for each step the bytes that this host sent.
        steps: for each step its spans on this rank; the last is the update.
        losses: means over ranks.
    """

    def __init__(self, way: str, options: argparse.Namespace) -> None:
        self.way = way
        torch.manual_seed(1)
        self.model = MODELS[options.model](options, sparse=way != "dense")
        tables = {id(table) for _, table in self.model.tables}
        self.rest = [p for p in self.model.module.parameters() if id(p) not in tables]
        self._optimizer = torch.optim.Adagrad(
            self.model.module.parameters(), lr=0.02, initial_accumulator_value=1e-5
        )
        self.sums = Sums(self.model.tables, self.rest, WAYS[way])
        self.steps: list[list[Span]] = []
        self.losses: list[float] = []
        self.sent: list[int] = []

    def step(self) -> None:
        """Make one step. Collective."""
        self._optimizer.zero_grad(set_to_none=self.way != "dense")
        mpix_sparse.barrier()
        sent = network_bytes()
        origin = time.perf_counter()
        loss = self.model.loss(len(self.steps)) / mpix_sparse.size()
        forward = time.perf_counter() - origin
        loss.backward()
        backward = time.perf_counter() - origin
        calls = self.sums.wait(origin)
        waited = time.perf_counter() - origin
        self._optimizer.step()
        whole = time.perf_counter() - origin
        spans = [("forward", 0.0, forward), ("backward", forward, backward), ("wait", backward, waited)]
        self.steps.append([*spans, *calls, ("update", waited, whole)])
        self.sent.append(network_bytes() - sent)
        self.losses.append(float(mpix_sparse.allreduce(numpy.array([loss.item()]))[0]))

    def turn(self) -> None:
        """Make the steps of a turn. Collective."""
        for _ in range(1 if self.way == "dense" else TURN):
            self.step()

    def record(self, turns: int) -> dict[str, Any]:
        """Measurements of all ranks after so many turns, and the spans of this rank's median step.
        Collective."""
        skip = turns if self.way == "dense" else turns * TURN
        whole = mpix_sparse.allreduce(numpy.array([spans[-1][2] for spans in self.steps]), "max")[skip:]
        waits = [dict((name, end - begin) for name, begin, end in spans)["wait"] for spans in self.steps]
        wait = mpix_sparse.allreduce(numpy.array(waits), "sum")[skip:] / mpix_sparse.size()
        sent = mpix_sparse.allreduce(numpy.array(self.sent), "max")[skip:]
        middle = skip + int(numpy.argsort(whole)[len(whole) // 2])
        return {
            "way": self.way,
            "step_s": [float(x) for x in whole],
            "median_s": float(numpy.median(whole)),
            "min_s": float(whole.min()),
            "wait_median_s": float(numpy.median(wait)),
            "bytes_sent_max": int(numpy.median(sent)),
            "rows_in": [call.rows_in for call in self.sums.calls],
            "rows_out": [call.rows_out for call in self.sums.calls],
            "losses": self.losses,
            "spans": [[name, round(begin, 6), round(end, 6)] for name, begin, end in self.steps[middle]],
        }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split(".")[0])
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--text", help="what the language model learns from")
    parser.add_argument("--turns", type=int, default=7, help="of each way [%(default)s]")
    parser.add_argument("--skip", type=int, default=3, help="turns that do not count [%(default)s]")
    parser.add_argument("--rate", type=float, help="of each host's link in Mb/s, for the records")
    parser.add_argument("--json", required=True, help="where to write")
    options = parser.parse_args()
    if options.model == "language" and options.text is None:
        parser.error("the language model needs --text FILE")
    return options


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    mpix_sparse.init()
    trainers = [Trainer(way, options) for way in WAYS]
    for _ in range(options.turns):
        for trainer in trainers:
            trainer.turn()
    model = trainers[0].model
    setup = {
        "model": options.model,
        "hosts": mpix_sparse.size(),
        "rate_mbit": options.rate,
        "parameters_of_tables": sum(table.numel() for _, table in model.tables),
        "row": model.tables[0][1].shape[1],
        "rows": sum(len(table) for _, table in model.tables),
        "other_parameters": sum(parameter.numel() for parameter in trainers[0].rest),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
    }
    records = [{**setup, **trainer.record(options.skip)} for trainer in trainers]
    if mpix_sparse.rank() == 0:
        with open(options.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)


if __name__ == "__main__":
    main()
