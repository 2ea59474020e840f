# SPDX-License-Identifier: BSD-3-Clause
"""Rows that a training touches: recorded traces, their statistics, and calls that replay them."""

import functools
import pathlib
import subprocess
import sys
import tempfile

from evaluation.figures import COLOURS, TOP, number, rows_of, save_figure, table
from evaluation.rows import HEAD, found_in, line_of

TABLES = ["input", "output"]
RANKS = 16
SCHEMES = "balanced,auto,recursive_doubling,split_allgather,ring,allgather,omni,sparse_ps,oktopk,split_dense"
RECORD = TOP / "examples" / "language_model" / "record.py"


@functools.lru_cache(maxsize=None)
def recorded(text):
    """A folder with the traces of a training on a text."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="traces-"))
    for name in TABLES:
        words = [sys.executable, str(RECORD), "--text", str(text), "--table", name, "--ranks", str(RANKS)]
        with open(folder / f"{name}.trace", "w", encoding="ascii") as file:
            subprocess.run(words, check=True, stdout=file)
    return folder


def measurements(text):
    """Traces of a text, in the working directory; empty without a text."""
    for name in TABLES if text else []:
        trace = f"trace:{name}.trace"
        yield f"trace-{name}-statistics", ["bench/trace-statistics", trace]
        words = f"bench/simulate -n {RANKS} -r 25 -s 1 -- --workload {trace} -n 8 -w 1 --check 0 --alone"
        yield f"trace-{name}", [*words.split(), "-S", SCHEMES]


def statistics_of(name):
    return next(iter(rows_of(f"trace-{name}-statistics")), None)


def draw(found):
    """Overlaps of pairs of ranks, and the share of each part on each rank."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot
    from matplotlib.colors import LogNorm

    figure, (left, *maps) = pyplot.subplots(1, 1 + len(found), figsize=(9, 3.4), layout="constrained")
    for colour, (name, row) in zip(COLOURS, found.items()):
        bins = row["overlap_bins"]
        places = [(i + 0.5) / len(bins) for i in range(len(bins))]
        left.step(places, [x / sum(bins) for x in bins], where="mid", color=colour, label=f"{name} table")
    left.set(xlabel="overlap of two ranks", ylabel="share of pairs")
    left.legend(fontsize=8)
    for axes, (name, row) in zip(maps, found.items()):
        picture = axes.imshow(row["shares"], aspect="auto", norm=LogNorm(1e-3, 1), cmap="viridis")
        axes.set(xlabel="part of the table", ylabel="rank", title=f"{name} table")
    figure.colorbar(picture, ax=maps, label="share of a rank's rows")
    return save_figure(figure, "traces", "Overlaps of pairs of ranks, and shares of parts, in traces")


def traces():
    found = {name: row for name in TABLES if (row := statistics_of(name))}
    if not found:
        return "Not measured yet.\n"
    head = ["table", "rows", "rows of a rank", "density", "overlap", "least and most", "gamma(16)"]
    head += ["first of 8 parts"]
    lines = []
    for name, row in found.items():
        mean = row["nnz_mean"]
        eighth = sum(sum(shares[:4]) for shares in row["shares"]) / row["ranks"]
        cells = [row["count"], number(mean, 0), f"{100 * mean / row['count']:.2f} %"]
        cells += [number(row["overlap_mean"])]
        cells += [f"{row['overlap_min']:.2f} to {row['overlap_max']:.2f}", number(row["gamma"][-1])]
        lines.append([name, *cells, f"{100 * eighth:.0f} %"])
    return draw(found) + "\n" + table(head, lines)


def traces_calls():
    lines = []
    for name in TABLES:
        found = found_in(f"trace-{name}")
        if found:
            lines.append([name, *line_of(found)])
    return table(["table", *HEAD], lines)


PARTS = [traces, traces_calls]
