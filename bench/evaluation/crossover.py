# SPDX-License-Identifier: BSD-3-Clause
"""The crossover map: predicted gain over dense, and the scheme that auto would run."""

import collections
import json
import math

from evaluation.figures import RESULTS, rows_of, save_figure, table

COUNT = 100_000_000
SHOWN = [(16, 1), (16, 16), (128, 1), (128, 16)]  # ranks, threads


def sum_cost():
    costs = json.loads((RESULTS / "costs.json").read_text())["costs"]
    return next(c["byte_s"] for c in costs if c["work"] == "sum")


def dense_bound(row, cost):
    """The longer of the messages and the sums of the best dense algorithm, as on the page with computing."""
    n, size = row["ranks"], 4 * COUNT
    messages = 2 * (n - 1) / n * size * 8 / (row["gbps"] * 1e9) + 2 * math.ceil(math.log2(n)) * 1e-5
    return max(messages, (n - 1) / n * size * cost / row["threads"])


def gains():
    cost = sum_cost()
    return {
        (r["ranks"], r["threads"], r["gbps"], r["density"]): (dense_bound(r, cost) / r["seconds"], r["runs"])
        for r in rows_of("crossover")
    }


def draw(axes, found, ranks, threads):
    from matplotlib.colors import LogNorm

    rates = sorted({key[2] for key in found})
    densities = sorted({key[3] for key in found})
    values = [[found[ranks, threads, rate, density][0] for density in densities] for rate in rates]
    axes.pcolormesh(values, norm=LogNorm(0.02, 50), cmap="RdYlBu", edgecolors="white", linewidth=0.5)
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            text = f"{value:.0f}" if value >= 10 else f"{value:.1f}"
            colour = "white" if value > 20 else "black"
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=6, color=colour)
    axes.set_xticks([x + 0.5 for x in range(len(densities))], [f"{100 * d:g}" for d in densities], fontsize=7)
    axes.set_yticks([y + 0.5 for y in range(len(rates))], [f"{rate:g}" for rate in rates], fontsize=7)
    axes.set_title(f"{ranks} ranks, {threads} thread{'s' * (threads > 1)}", fontsize=9)


def draw_map(found):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 2, figsize=(9, 6.4), layout="constrained", sharex=True, sharey=True)
    for axes, (ranks, threads) in zip(panels.flat, SHOWN):
        draw(axes, found, ranks, threads)
    figure.supxlabel("density of a rank, %", fontsize=9)
    figure.supylabel("rate, Gb/s", fontsize=9)
    figure.suptitle("Predicted gain over the best dense allreduce; below 1 dense is faster", fontsize=10)
    return save_figure(figure, "crossover", "Predicted gain over dense by rate and density")


def crossover_map():
    found = gains()
    return draw_map(found) + "\n" + crossovers(found) if found else "Not measured yet.\n"


def crossovers(found):
    """The largest density with a gain of 1 or more, and what auto runs."""
    rates = sorted({key[2] for key in found})
    lines = []
    for ranks in sorted({key[0] for key in found}):
        for threads in (1, 16):
            cells = []
            for rate in (1, 10, 25, 100, 400):
                sparse = [
                    d
                    for n, t, r, d in found
                    if (n, t, r) == (ranks, threads, rate) and found[n, t, r, d][0] >= 1
                ]
                cells.append(f"{100 * max(sparse):g} %" if sparse else "-")
            runs = collections.Counter(found[key][1] for key in found if key[:2] == (ranks, threads))
            names = ", ".join(f"{name} {100 * k / (len(rates) * 10):.0f} %" for name, k in runs.most_common())
            lines.append([ranks, threads] + cells + [names])
    return table(
        ["ranks", "threads"] + [f"{rate} Gb/s" for rate in (1, 10, 25, 100, 400)] + ["`auto` would run"],
        lines,
    )
