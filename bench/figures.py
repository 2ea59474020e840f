# SPDX-License-Identifier: BSD-3-Clause
"""What bench/evaluate and bench/points make of JSON lines: tables in Markdown, and figures."""

import json
import math
import pathlib

TOP = pathlib.Path(__file__).resolve().parent.parent
FIGURES = TOP / "doc" / "evaluation"
RESULTS = TOP / "bench" / "results"
LIMITS = ("memory", "memory_node", "skeleton")  # rows that reduce nothing

# Okabe and Ito: told apart by people who see colours differently. With markers besides.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
MARKERS = "osD^vPX*"


def records(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def rows_of(name):
    """Records of a file; none where it was not measured."""
    file = RESULTS / (name + ".json")
    return records(file) if file.exists() else []


def times_of(name):
    return {row["scheme"]: row["median_s"] for row in rows_of(name) if row["scheme"] not in LIMITS}


def table(head, lines):
    if not lines:
        return "Not measured yet.\n"
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, rule] + lines) + "\n"


def number(x, digits=2):
    return "-" if x is None or math.isnan(x) else f"{x:.{digits}f}"


def save(axes, name, alt):
    """Write a figure; the line of Markdown that shows it."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(FIGURES / (name + ".svg"), metadata={"Date": None})
    return f"![{alt}](evaluation/{name}.svg)\n"


def new_axes(xlabel, ylabel, **settings):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot

    axes = pyplot.figure(figsize=(8, 4.2), layout="constrained").add_subplot()
    axes.set(xlabel=xlabel, ylabel=ylabel, **settings)
    axes.grid(axis="y", alpha=0.3)
    return axes


def lines_of(axes, series, dashed=None):
    """A line for each of the series, and a dashed one of its colour where `dashed` has one of its name."""
    for i, (name, points) in enumerate(series.items()):
        look = {"color": COLOURS[i % 8], "marker": MARKERS[i % 8], "markersize": 4}
        axes.plot(*zip(*sorted(points)), label=name, **look)
        if dashed and name in dashed:
            axes.plot(*zip(*sorted(dashed[name])), linestyle="--", **look)
    if series:
        axes.legend(fontsize=8)


def bars_of(axes, groups, series):
    """A group of bars for each name, one bar for each of the series; a value may be missing."""
    width = 0.8 / max(len(series), 1)
    for i, (name, values) in enumerate(series.items()):
        places = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        look = {"color": COLOURS[i % 8], "edgecolor": "white", "hatch": "//" if i >= 8 else None}
        axes.bar(places, values, width, label=name, **look)
    axes.set_xticks(range(len(groups)), groups)
    if series:
        axes.legend(fontsize=8)
