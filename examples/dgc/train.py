# SPDX-License-Identifier: BSD-3-Clause
"""Train a small model of the next character on several ranks, with whole gradients and with Deep Gradient
Compression, and compare final losses and bytes sent.

    mpiexec -n 4 python3 examples/dgc/train.py [--text FILE] [--ratios 0.05 0.01] [--steps 1000]

Without a file the text is drawn from a chain of random probabilities, in which what comes next depends on two
characters. All ways begin with the same weights and see the same batches.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from typing import Any, Callable

import numpy
import torch
from torch.nn.utils.stateless import functional_call

import mpix_sparse
import mpix_sparse.torch as hvd

CONTEXT = 3  # characters from which the next one is told
MOMENTUM = 0.9
WARMUP_STAGES = 4
HELD_OUT = 20  # one character in so many is for evaluation
LEAST_TEXT = 1000  # characters
LEAST_RATIO = 1e-6


def draw_text(length: int, letters: int) -> numpy.ndarray:
    """Characters of a chain: after each two of them, a few are likely."""
    random = numpy.random.default_rng(1)
    weights = random.exponential(size=(letters, letters, letters)) ** 3
    cumulated = numpy.cumsum(weights / weights.sum(2, keepdims=True), axis=2)
    text, chances = numpy.zeros(length, numpy.int64), random.random(length)
    for i in range(2, length):
        text[i] = min(numpy.searchsorted(cumulated[text[i - 2], text[i - 1]], chances[i]), letters - 1)
    return text


def read_text(name: str) -> numpy.ndarray:
    """The bytes of a file, numbered from 0."""
    return numpy.unique(numpy.fromfile(name, numpy.uint8), return_inverse=True)[1].astype(numpy.int64)


class Windows:
    """Pieces of a text with the character that follows. Each rank draws its own for training, and has a share
    of those held out."""

    def __init__(self, text: numpy.ndarray, seed: int) -> None:
        text, self._seed = torch.from_numpy(text), seed
        windows, held_out = text.unfold(0, CONTEXT + 1, 1), len(text) // HELD_OUT
        self._training = windows[:-held_out]
        self.held_out = windows[-held_out:][hvd.rank() :: hvd.size()]

    def batch(self, step: int, size: int) -> torch.Tensor:
        """This rank's windows of a step."""
        number = (self._seed << 32) + step * hvd.size() + hvd.rank()
        generator = torch.Generator().manual_seed(number)
        return self._training[torch.randint(len(self._training), (size,), generator=generator)]


class Flat(torch.nn.Module):
    """A model whose parameters are one vector, so that the largest elements of all its layers are selected
    together, as of the buckets of DistributedDataParallel, and are summed in one call."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model = [model]  # in a list, so that its parameters are not this module's
        self._shapes = [(name, parameter.shape) for name, parameter in model.named_parameters()]
        self.flat = torch.nn.Parameter(torch.nn.utils.parameters_to_vector(model.parameters()).detach())

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        pieces = self.flat.split([shape.numel() for _, shape in self._shapes])
        named = {name: piece.view(shape) for (name, shape), piece in zip(self._shapes, pieces)}
        return functional_call(self._model[0], named, inputs)


def make_model(characters: int, options: argparse.Namespace) -> Flat:
    """The same on all ranks, and in each way."""
    torch.manual_seed(options.seed)
    width = options.width
    return Flat(
        torch.nn.Sequential(
            torch.nn.Embedding(characters, 16),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * CONTEXT, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, characters),
        )
    )


def loss_of(model: Flat, windows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(windows[:, :-1]), windows[:, -1])


def evaluate(model: Flat, windows: torch.Tensor) -> float:
    """The loss on all ranks' windows."""
    with torch.no_grad():
        total = loss_of(model, windows) * len(windows)
    both = hvd.allreduce(torch.tensor([float(total), len(windows)], dtype=torch.float64), op=hvd.Sum)
    return float(both[0] / both[1])


def make_optimizer(model: Flat, ratio: float | None, options: argparse.Namespace) -> torch.optim.Optimizer:
    """With whole gradients where there is no ratio. DGC has the momentum in itself."""
    compression = hvd.Compression.none
    if ratio is not None:
        stage = max(1, round(options.steps * options.warmup / WARMUP_STAGES))
        compression = hvd.Compression.dgc(
            ratio=ratio,
            momentum=MOMENTUM,
            warmup_epochs=WARMUP_STAGES if options.warmup > 0 else 0,
            steps_per_epoch=stage,
            clip=options.clip,
            masking=options.masked,
        )
    momentum = MOMENTUM if ratio is None else 0
    base = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=momentum)
    named = model.named_parameters()
    return hvd.DistributedOptimizer(base, named_parameters=named, compression=compression)


def train(windows: Windows, characters: int, ratio: float | None, options: argparse.Namespace) -> dict:
    """Train one way. Returns its loss, and what each rank sent in a step: the mean over all and over those
    behind the warm-up."""
    model = make_model(characters, options)
    optimizer, name = make_optimizer(model, ratio, options), "whole" if ratio is None else f"DGC {ratio:.2%}"
    sent, begin = [], time.perf_counter()
    for step in range(options.steps):
        optimizer.param_groups[0]["lr"] = options.rate * 0.5 * (1 + math.cos(math.pi * step / options.steps))
        optimizer.zero_grad()
        loss_of(model, windows.batch(step, options.batch)).backward()
        optimizer.step()
        sent.append(hvd.report().bytes_sent)
        if hvd.rank() == 0 and (step + 1) % max(1, options.steps // 4) == 0:
            print(f"# {name}, step {step + 1}", flush=True)
    bytes_sent = mpix_sparse.allreduce(numpy.array(sent, numpy.float64)) / hvd.size()
    late = bytes_sent[len(bytes_sent) // 5 :]
    seconds = (time.perf_counter() - begin) / options.steps
    loss = evaluate(model, windows.held_out)
    return {"name": name, "loss": loss, "bytes": bytes_sent.mean(), "late": late.mean(), "seconds": seconds}


def print_table(rows: list[dict], parameters: int) -> None:
    print(f"# {parameters} parameters, {hvd.size()} ranks")
    columns = f"{'vs whole':>10}{'bytes/step':>12}{'late':>10}{'less':>8}{'ms/step':>10}"
    print(f"{'gradients':<12}{'loss':>9}{columns}")
    whole = rows[0]
    for row in rows:
        change, less = row["loss"] / whole["loss"] - 1, whole["late"] / max(row["late"], 1)
        numbers = f"{row['bytes']:12,.0f}{row['late']:10,.0f}{less:7.1f}x{1e3 * row['seconds']:10.2f}"
        print(f"{row['name']:<12}{row['loss']:9.4f}{change:+10.2%}{numbers}")


def within(kind: type, least: float, most: float = math.inf) -> Callable[[str], Any]:
    """What reads an option: a number of a kind, from the least to the most."""

    def read(text: str) -> Any:
        number = kind(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text} is not from {least} to {most}")
        return number

    return read


def text_file(name: str) -> str:
    """A file that holds enough to learn from, and to hold some of it out on each rank."""
    if not os.access(name, os.R_OK) or not os.path.getsize(name) >= LEAST_TEXT:
        raise argparse.ArgumentTypeError(f"{name} is no file with {LEAST_TEXT} characters or more")
    return name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=text_file, help="a file to learn; drawn if there is none")
    count, share = within(int, 1), within(float, LEAST_RATIO, 1)
    parser.add_argument("--letters", type=count, default=10, help="different ones in a text that is drawn")
    parser.add_argument("--ratios", type=share, nargs="*", default=[0.05, 0.01], help="shares that travel")
    parser.add_argument("--steps", type=count, default=1000)
    parser.add_argument("--batch", type=count, default=32, help="windows of each rank")
    parser.add_argument("--width", type=count, default=192, help="of the hidden layers")
    parser.add_argument("--rate", type=float, default=0.3, help="of learning, at first")
    parser.add_argument(
        "--clip", type=within(float, 1e-30), default=None, help="norm that gradients may have, under DGC"
    )
    parser.add_argument("--masked", action="store_true", help="take its velocity from what travels")
    parser.add_argument(
        "--warmup", type=within(float, 0, 1), default=0.1, help="share of the steps in which more travels"
    )
    parser.add_argument("--seed", type=int, default=7, help="of weights and batches")
    parser.add_argument("--nodes", help="that ranks are taken to be on; each on one of its own if not given")
    options = parser.parse_args()
    # Ranks of one node read each other's memory instead of sending.
    os.environ["MPIX_SPARSE_NODES"] = options.nodes or str(mpix_sparse.size())
    hvd.init()
    torch.set_num_threads(1)
    text = read_text(options.text) if options.text else draw_text(400_000, options.letters)
    windows, characters = Windows(text, options.seed), int(text.max()) + 1
    rows = [train(windows, characters, ratio, options) for ratio in (None, *options.ratios)]
    if hvd.rank() == 0:
        print_table(rows, make_model(characters, options).flat.numel())
    hvd.shutdown()


if __name__ == "__main__":
    main()
