# SPDX-License-Identifier: BSD-3-Clause
"""Records in JSON lines, lower bounds of their times, Markdown tables and figures."""

import json
import math
import pathlib

TOP = pathlib.Path(__file__).resolve().parents[2]
FIGURES = TOP / "doc" / "evaluation"
RESULTS = TOP / "bench" / "results"
LIMITS = ("memory", "memory_node", "skeleton")  # bounds: rows that reduce nothing

MODELS = ["lstm", "deepfm", "nmt", "llama", "opt", "gemma"]
# Schemes of others.
PEERS = "recursive_doubling,split_allgather,split_dense,ring,hybrid,allgather,omni,sparse_ps,oktopk"
BUCKETS = {"llama", "opt", "gemma"}  # equal tensors

# The palette of Okabe and Ito, for readers with colour vision deficiency; markers differ, too.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
COLOURS += ["#999999", "#8C510A"]
MARKERS = "osD^vPX*<>"


def records(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def rows_of(name):
    """Records of a file; empty if the file was not measured."""
    file = RESULTS / (name + ".json")
    return records(file) if file.exists() else []


def variant_of(row):
    """The scheme of a row, and how it was told to divide the vector if it was."""
    contiguous = row["scheme"] == "omni" and row["partition_requested"] == "range"
    one = row.get("columns_requested") == "1"
    return row["scheme"] + ", contiguous" * contiguous + ", one column" * one


def times_of(name):
    return {variant_of(row): row["median_s"] for row in rows_of(name) if row["scheme"] not in LIMITS}


def rate_in(row):
    return row["label"].split(":")[2].removesuffix("Gb/s")


def rate_of(row):
    """Bandwidth of the network in a row's label, in bytes a second, divided by the scale."""
    return float(rate_in(row)) * 1e9 / 8 / row["scale"]


def latency_of(row):
    return float(row["label"].split(":")[3].removesuffix("us")) * 1e-6


def floor_of(row):
    """Lower bound of the time: the least bytes over the rate, plus the latencies of a push and a pull."""
    return row["bytes_floor"] / rate_of(row) + 2 * latency_of(row)


def values_of(row):
    """The floor of values alone, without indices."""
    n, size = row["ranks"], 4 * row["row"]
    return (n - 1) / n * size * (row["nnz_in_mean"] + row["nnz_out"]) / rate_of(row) + 2 * latency_of(row)


def dense_of(row):
    """The best dense algorithm: transfers 2 (n - 1) / n of the vector, with 2 log2 n latencies."""
    n, size = row["ranks"], 4 * row["count"] * row["row"]
    return 2 * (n - 1) / n * size / rate_of(row) + 2 * math.ceil(math.log2(n)) * latency_of(row)


def table(head, lines):
    if not lines:
        return "Not measured yet.\n"
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, rule] + lines) + "\n"


def number(x, digits=2):
    return "-" if x is None or math.isnan(x) else f"{x:.{digits}f}"


def save_figure(figure, name, alt):
    """Write a figure. Return the line of Markdown that shows the figure."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / (name + ".svg"), metadata={"Date": None})
    return f"![{alt}](evaluation/{name}.svg)\n"


def save(axes, name, alt):
    return save_figure(axes.figure, name, alt)


def new_axes(xlabel, ylabel, **settings):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot

    axes = pyplot.figure(figsize=(8, 4.2), layout="constrained").add_subplot()
    axes.set(xlabel=xlabel, ylabel=ylabel, **settings)
    axes.grid(axis="y", alpha=0.3)
    return axes


def lines_of(axes, series, dashed=None, **legend):
    """Plot each series as a line, and the series of the same name in `dashed` as a dashed line."""
    for i, (name, points) in enumerate(series.items()):
        look = {"color": COLOURS[i], "marker": MARKERS[i], "markersize": 4}
        axes.plot(*zip(*sorted(points)), label=name, **look)
        if dashed and name in dashed:
            axes.plot(*zip(*sorted(dashed[name])), linestyle="--", **look)
    if series:
        axes.legend(fontsize=8, **legend)


def bars_of(axes, groups, series, base=0):
    """Plot a group of bars for each name, with one bar for each series; values may be missing. Bars start at
    the base."""
    width = 0.8 / max(len(series), 1)
    for i, (name, values) in enumerate(series.items()):
        places = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        heights = [value - base for value in values]
        axes.bar(places, heights, width, bottom=base, label=name, color=COLOURS[i], edgecolor="white")
    axes.set_xticks(range(len(groups)), groups)
    if series:
        axes.legend(fontsize=8)
