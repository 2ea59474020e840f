# SPDX-License-Identifier: BSD-3-Clause
"""The page on what simulations assume, varied one at a time: measurements and parts, for bench/evaluate."""

import math

from evaluation import seeds
from evaluation.figures import COLOURS, MARKERS, number, rows_of, save_figure, table, times_of

RANKS, RATE = 16, 25
SCALES = {"lstm": 256, "llama": 64}
SMALL = "small"  # a vector of 100 000 elements, 1 % of which are there: latencies count
SCHEMES = "balanced,auto,recursive_doubling,split_allgather,dense"
LATENCIES = [1, 5, 10, 20, 50]
NETWORKS = {"racks": "--rack 4 --core 1", "core": "--rack 4 --core 4", "slow": "--slow 4"}
LATE_US = 5000
UNEQUAL = 10  # asked for; strips of a workload have room for fewer
RANK_OPTIONS = {
    "late": f"--late {LATE_US}",
    "jitter": f"--jitter {LATE_US}",
    "unequal": f"--unequal {UNEQUAL}",
}
DRIFT = 0.125  # of the vector, in each step
DRIFTING = "balanced,auto,oktopk,recursive_doubling"


def tensor_of(workload):
    return "-c 100k -d 0.01" if workload == SMALL else f"--workload {workload}"


def simulation(workload, schemes, network="", options="", calls="-n 1 -w 1", scale=None):
    """Dense is a ring here, the algorithm that racks and slow links hurt least."""
    scale = scale or SCALES.get(workload, 1)
    words = f"bench/simulate -n {RANKS} -r {RATE} -s {scale} -d lr {network}"
    return f"{words} -- {tensor_of(workload)} {options} {calls} --check 0 --alone -S {schemes}".split()


def measurements():
    for workload in [*SCALES, SMALL]:
        more = SCHEMES + (",allgather" if workload == SMALL else "")
        for latency in LATENCIES:
            name = f"sensitivity-{workload}-latency-{latency}"
            yield name, simulation(workload, more, f"-l {latency}")
    for workload in SCALES:
        for name, network in NETWORKS.items():
            yield f"sensitivity-{workload}-{name}", simulation(workload, SCHEMES, network)
        for name, options in RANK_OPTIONS.items():
            yield f"sensitivity-{workload}-{name}", simulation(workload, SCHEMES, options=options)
        for name, drift in (("still", 0), ("drift", DRIFT)):
            calls = simulation(workload, DRIFTING, options=f"--drift {drift}", calls="-n 7 -w 1")
            yield f"sensitivity-{workload}-{name}", calls


def cells_of(name, base=None):
    """Time of `balanced`, also over that of another file; peers and dense over it; what `auto` ran."""
    rows = {row["scheme"]: row for row in rows_of(name)}
    times = {scheme: row["median_s"] for scheme, row in rows.items()}
    ours = times["balanced"]
    before = times_of(base)["balanced"] if base else ours
    others = [times.get(s, math.nan) / ours for s in ("recursive_doubling", "split_allgather", "dense")]
    auto = times["auto"] / min(t for s, t in times.items() if s != "auto")
    figures = [number(ours * 1e3)] + ([number(ours / before)] if base else [])
    return figures + [number(x) for x in others] + [rows["auto"]["ran"], number(auto)]


HEAD = ["recursive doubling", "split_allgather", "dense", "`auto` ran", "`auto` / fastest"]


def by_latency():
    lines = []
    for workload in [*SCALES, SMALL]:
        for latency in LATENCIES:
            name = f"sensitivity-{workload}-latency-{latency}"
            if rows_of(name):
                lines.append([workload, latency] + cells_of(name))
    return table(["workload", "latency, us", "`balanced`, ms"] + HEAD, lines)


def compared(cases, words):
    """A table of cases, each beside the same workload without it."""
    lines = []
    for workload in SCALES:
        base = f"sensitivity-{workload}-latency-10"
        for case in cases:
            name = f"sensitivity-{workload}-{case}" if case else base
            if rows_of(name):
                lines.append([workload, words(workload, case)] + cells_of(name, base))
    return table(["workload", "case", "`balanced`, ms", "over the first"] + HEAD, lines)


def by_network():
    return compared(["", *NETWORKS], words_of_network)


def words_of_network(_, case):
    words = {"": "one switch", "racks": "racks, core 1:1", "core": "racks, core 4:1", "slow": "one slow link"}
    return words[case]


def most_of(workload):
    """How many times as many elements the fullest of the unequal ranks has as most ranks have."""
    names = [f"sensitivity-{workload}-{case}" for case in ("unequal", "latency-10")]
    fullest, usual = [rows_of(name)[0]["nnz_in_max"] for name in names]
    return fullest / usual


def words_of_ranks(workload, case):
    late = f"{LATE_US / 1000:g} ms"
    words = {"": "all alike", "late": f"one rank {late} late", "jitter": f"each up to {late} late"}
    return words[case] if case in words else f"one with {most_of(workload):.1f} times, one with none"


def by_ranks():
    return compared(["", *RANK_OPTIONS], words_of_ranks)


def by_drift():
    lines = []
    for workload in SCALES:
        still, drift = [times_of(f"sensitivity-{workload}-{name}") for name in ("still", "drift")]
        for scheme in filter(drift.__contains__, still):
            times = [still[scheme], drift[scheme]]
            cells = [number(t * 1e3) for t in times] + [number(times[1] / times[0])]
            lines.append([workload, scheme] + cells)
    return table(["workload", "scheme", "still, ms", "drifting, ms", "ratio"], lines)


SHOWN = ["balanced", "recursive_doubling", "split_allgather", "dense"]


def draw_latencies(axes):
    for colour, marker, workload in zip(COLOURS, MARKERS, [*SCALES, SMALL]):
        times = [times_of(f"sensitivity-{workload}-latency-{us}")["balanced"] for us in LATENCIES]
        look = {"color": colour, "marker": marker, "markersize": 4}
        axes.plot(LATENCIES, [t / times[LATENCIES.index(10)] for t in times], label=workload, **look)
    axes.set(title="latency, us", xscale="log", yscale="log", ylabel="`balanced`, 10 us = 1".replace("`", ""))
    axes.set_xticks(LATENCIES, LATENCIES)
    axes.legend(fontsize=7)


def draw_cases(axes, cases, words, title):
    """Times of schemes in each case, over that of `balanced` without it."""
    groups = [(m, case) for m in SCALES for case in cases]
    width = 0.8 / len(SHOWN)
    for i, scheme in enumerate(SHOWN):
        times = [times_of(f"sensitivity-{m}-{case or 'latency-10'}")[scheme] for m, case in groups]
        base = [times_of(f"sensitivity-{m}-latency-10")["balanced"] for m, _ in groups]
        places = [x + (i - (len(SHOWN) - 1) / 2) * width for x in range(len(groups))]
        axes.bar(places, [t / b for t, b in zip(times, base)], width, color=COLOURS[i], label=scheme)
    names = [f"{m}, {words(m, case)}" for m, case in groups]
    axes.set_xticks(range(len(groups)), names, fontsize=6, rotation=40, ha="right")
    axes.set(title=title, yscale="log", ylabel="balanced at first = 1")
    axes.legend(fontsize=7)


def draw_drift(axes):
    schemes = DRIFTING.split(",")
    for i, workload in enumerate(SCALES):
        still, drift = [times_of(f"sensitivity-{workload}-{name}") for name in ("still", "drift")]
        places = [x + (i - 0.5) * 0.4 for x in range(len(schemes))]
        axes.bar(places, [drift[s] / still[s] for s in schemes], 0.4, color=COLOURS[i], label=workload)
    axes.set_xticks(range(len(schemes)), schemes, fontsize=6, rotation=40, ha="right")
    axes.set(title="drift", ylabel="drifting / still")
    axes.legend(fontsize=7)


def draw():
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 3, figsize=(12, 7.6), layout="constrained")
    draw_latencies(panels[0, 0])
    draw_cases(panels[0, 1], ["", *NETWORKS], words_of_network, "networks")
    draw_cases(panels[0, 2], ["", *RANK_OPTIONS], words_of_ranks, "ranks")
    draw_drift(panels[1, 0])
    seeds.draw(panels[1, 1])
    panels[1, 2].axis("off")
    figure.suptitle("16 ranks, 25 Gb/s, messages alone, formats chosen, simulated", fontsize=10)
    return save_figure(figure, "sensitivity", ALT)


ALT = "Times with other latencies, networks, ranks, drift and seeds"


def sensitivity():
    files = [f"sensitivity-{m}-{case}" for m in SCALES for case in ("latency-10", "still", "unequal", "core")]
    return draw() if all(map(rows_of, files)) else "Not measured yet.\n"


PARTS = [sensitivity, by_latency, by_network, by_ranks, by_drift]
