# SPDX-License-Identifier: BSD-3-Clause
"""The crossover map: predicted gain over dense, and the scheme that auto would run."""

import collections
import itertools
import json
import math
from typing import NamedTuple

from evaluation.figures import RESULTS, rows_of, save_figure, table

COUNT = 100_000_000
SHOWN = [(16, 1), (16, 4), (16, 16), (128, 1), (128, 4), (128, 16)]  # ranks, threads


def sum_cost():
    costs = json.loads((RESULTS / "costs.json").read_text())["costs"]
    return next(c["byte_s"] for c in costs if c["work"] == "sum")


def dense_bound(row, cost):
    """The longer of the messages and the sums of the best dense algorithm, as on the page with computing."""
    n, size = row["ranks"], 4 * COUNT
    messages = 2 * (n - 1) / n * size * 8 / (row["gbps"] * 1e9) + 2 * math.ceil(math.log2(n)) * 1e-5
    return max(messages, (n - 1) / n * size * cost / row["threads"])


class Cell(NamedTuple):
    gain: float  # time of the best dense algorithm over the predicted time of `auto`
    runs: str
    dense: float  # the predicted time of MPI_Allreduce over the bound

    def wrong(self):
        """Whether `auto` runs a sparse scheme that takes more than 5 % longer than the bound of dense."""
        return self.runs != "dense" and self.gain < 0.95

    def dense_above_bound(self):
        """Whether `auto` runs MPI_Allreduce, which takes more than 5 % longer than the bound."""
        return self.runs == "dense" and self.gain < 0.95


def cells():
    cost, found = sum_cost(), {}
    for r in rows_of("crossover"):
        bound = dense_bound(r, cost)
        cell = Cell(bound / r["seconds"], r["runs"], r["dense_s"] / bound)
        found[r["ranks"], r["threads"], r["gbps"], r["density"]] = cell
    return found


def draw(axes, found, ranks, threads):
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    rates = sorted({key[2] for key in found})
    densities = sorted({key[3] for key in found})
    values = [[found[ranks, threads, rate, density].gain for density in densities] for rate in rates]
    axes.pcolormesh(values, norm=LogNorm(0.02, 50), cmap="RdYlBu", edgecolors="white", linewidth=0.5)
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            text = f"{value:.0f}" if value >= 10 else f"{value:.1f}"
            colour = "white" if value > 20 else "black"
            cell = found[ranks, threads, rates[y], densities[x]]
            if cell.wrong() or cell.dense_above_bound():
                hatch = "////" if cell.wrong() else "...."
                axes.add_patch(
                    Rectangle((x, y), 1, 1, fill=False, hatch=hatch, edgecolor="grey", linewidth=0)
                )
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=6, color=colour)
    axes.set_xticks([x + 0.5 for x in range(len(densities))], [f"{100 * d:g}" for d in densities], fontsize=7)
    axes.set_yticks([y + 0.5 for y in range(len(rates))], [f"{rate:g}" for rate in rates], fontsize=7)
    axes.set_title(f"{ranks} ranks, {threads} thread{'s' * (threads > 1)}", fontsize=9)


def draw_map(found):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 3, figsize=(12, 6.4), layout="constrained", sharex=True, sharey=True)
    for axes, (ranks, threads) in zip(panels.flat, SHOWN):
        draw(axes, found, ranks, threads)
    figure.supxlabel("density of a rank, %", fontsize=9)
    figure.supylabel("rate, Gb/s", fontsize=9)
    title = "Predicted gain over the best dense allreduce; below 1 dense is faster.\n"
    title += "Hatched: auto runs a sparse scheme, more than 5 % slower than that bound. "
    title += "Dotted: it runs MPI_Allreduce, predicted to be so."
    figure.suptitle(title, fontsize=10)
    return save_figure(figure, "crossover", "Predicted gain over dense by rate and density")


def crossover_map():
    found = cells()
    return draw_map(found) + "\n" + crossovers(found) if found else "Not measured yet.\n"


def gaining(found, ranks, threads, rate):
    """The largest density up to which every cell has a gain of 1 or more; 0 without one."""
    line = sorted(
        (d, cell.gain) for (n, t, r, d), cell in found.items() if (n, t, r) == (ranks, threads, rate)
    )
    return max([d for d, _ in itertools.takewhile(lambda point: point[1] >= 1, line)], default=0)


def crossovers(found):
    """The largest density up to which there is a gain, and what auto runs."""
    lines, rates = [], (1, 10, 25, 100, 400)
    for ranks, threads in sorted({key[:2] for key in found}):
        limits = [gaining(found, ranks, threads, rate) for rate in rates]
        here = [cell for key, cell in found.items() if key[:2] == (ranks, threads)]
        runs = collections.Counter(cell.runs for cell in here)
        names = ", ".join(f"{name} {100 * k / len(here):.0f} %" for name, k in runs.most_common())
        marked = [sum(map(kind, here)) for kind in (Cell.wrong, Cell.dense_above_bound)]
        cells_of_rates = [f"{100 * limit:g} %" if limit else "-" for limit in limits]
        lines.append([ranks, threads, *cells_of_rates, names, *marked])
    head = ["ranks", "threads", *(f"{rate} Gb/s" for rate in rates), "`auto` would run", "hatched", "dotted"]
    return table(head, lines)
