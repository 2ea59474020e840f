# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of a run over all ranks, and their output: table, JSON lines, plot, progress bar."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any, Sequence

import numpy

import mpix_sparse

BAR = 24  # columns


@dataclass
class Step:
    """One step of one rank. Times in seconds.

    Attributes:
        loss: mean over the rank's batch.
        whole: time of the whole step.
        wait: time until all ranks have finished the backward pass.
        transfer: time in calls that sum gradients, including those during the backward pass.
    """

    loss: float
    whole: float
    wait: float
    transfer: float

    @property
    def share(self) -> float:
        """Share of the step spent on communication."""
        return (self.wait + self.transfer) / self.whole


NAMES = [field.name for field in fields(Step)]


class Measured:
    """The steps of one way to communicate, over all ranks. The constructor is collective.

    Loss and wait are means over ranks; step and transfer times, and the bytes of the optimizer's state, are
    maxima over ranks.
    """

    def __init__(self, name: str, steps: Sequence[Step], words: int, state_bytes: int) -> None:
        self.name, self.words = name, words
        self.state_bytes = int(mpix_sparse.allreduce(numpy.array([state_bytes]), "max")[0])
        mine = numpy.array([list(asdict(step).values()) for step in steps])
        most = mpix_sparse.allreduce(mine, "max")
        mean = mpix_sparse.allreduce(mine, "sum") / mpix_sparse.size()
        self.loss, self.wait = mean[:, 0], mean[:, 2]
        self.whole, self.transfer = most[:, 1], most[:, 3]

    def summary(self, skip: int) -> dict[str, Any]:
        """Medians in milliseconds and words per second, over the steps from `skip` on."""
        whole, wait, transfer = (1e3 * part[skip:] for part in (self.whole, self.wait, self.transfer))
        return {
            "communication": self.name,
            "words_per_second": 1e3 * self.words * len(whole) / whole.sum(),
            "loss": float(self.loss[-10:].mean()),
            "step_ms": float(numpy.median(whole)),
            "wait_ms": float(numpy.median(wait)),
            "transfer_ms": float(numpy.median(transfer)),
            "state_bytes": self.state_bytes,
            "share": float((wait + transfer).sum() / whole.sum()),
        }


def print_table(summaries: Sequence[dict[str, Any]]) -> None:
    """Print one row for each way, with the speedup of the last way over it."""
    last = summaries[-1]
    columns = (
        "words/s",
        "loss",
        "step ms",
        "wait ms",
        "transfer ms",
        "share %",
        "transfer x",
        "words/s x",
        "state MB",
    )
    print(f"{'':12}" + "".join(f"{column:>12}" for column in columns))
    for row in summaries:
        gains = row["transfer_ms"] / last["transfer_ms"], last["words_per_second"] / row["words_per_second"]
        times = "".join(f"{row[key]:12.2f}" for key in ("step_ms", "wait_ms", "transfer_ms"))
        print(
            f"{row['communication']:12}{row['words_per_second']:12,.0f}{row['loss']:12.4f}{times}"
            f"{100 * row['share']:12.1f}{gains[0]:12.2f}{gains[1]:12.2f}{row['state_bytes'] / 1e6:12.2f}"
        )


def write_json(path: str, setup: dict[str, Any], measured: Sequence[Measured], skip: int) -> None:
    """Write JSON lines: the setup, every step of every way, and a summary of each way."""
    with open(path, "w", encoding="utf-8") as file:

        def write(kind: str, fields: dict[str, Any]) -> None:
            file.write(json.dumps({"kind": kind, **fields}) + "\n")

        write("setup", setup)
        for way in measured:
            for number, step in enumerate(zip(way.loss, way.whole, way.wait, way.transfer)):
                values = dict(zip(NAMES, map(float, step)))
                write("step", {"communication": way.name, "step": number, **values})
        for way in measured:
            write("summary", way.summary(skip))


def plot(path: str, measured: Sequence[Measured], skip: int) -> str:
    """Plot the losses by step and the parts of a step's time. Returns a sentence that says what was
    written."""
    try:
        import matplotlib
    except ImportError as reason:
        return f"no plot: {reason} (Debian: python3-matplotlib)"
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for way, line in zip(measured, ("-", "--", ":")):
        left.plot(way.loss, line, label=way.name)
    left.set(xlabel="step", ylabel="loss", title="Loss")
    left.legend()
    rows = [way.summary(skip) for way in measured]
    names, bottom = [row["communication"] for row in rows], numpy.zeros(len(rows))
    wait, transfer, whole = (
        numpy.array([row[f"{part}_ms"] for row in rows]) for part in ("wait", "transfer", "step")
    )
    parts = {"computing": whole - wait - transfer, "waiting for ranks": wait, "transfer": transfer}
    for label, heights in parts.items():
        right.bar(names, heights, bottom=bottom, label=label)
        bottom += heights
    right.set(ylabel="milliseconds", title="A step (medians)")
    right.legend()
    figure.tight_layout()
    figure.savefig(path)
    return f"plot in {path}"


def show_progress(name: str, done: int, of: int, step: Step, words: int) -> None:
    """Draw the progress bar, with measurements of rank 0. In a file there is one bar, at the end."""
    if done < of and not sys.stderr.isatty():
        return
    filled = BAR * done // of
    bar = "#" * filled + "-" * (BAR - filled)
    numbers = (
        f"{words / step.whole:8,.0f} words/s, loss {step.loss:.3f}, communication {100 * step.share:3.0f} %"
    )
    sys.stderr.write(f"\r[{bar}] {done}/{of} {name:12} {numbers}" + ("\n" if done == of else ""))
    sys.stderr.flush()
