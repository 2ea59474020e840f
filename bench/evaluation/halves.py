# SPDX-License-Identifier: BSD-3-Clause
"""The halves of an allreduce: measurements and their tables, for bench/evaluate."""

import math

from evaluation.figures import latency_of, number, rate_of, rows_of, table

WORKLOADS = ["lstm", "nmt"]
RANKS = [16, 64]
SCALES = {8: {"lstm": 64, "nmt": 32}, 16: {"lstm": 64, "nmt": 32}, 64: {"lstm": 512, "nmt": 256}}
FINE = SCALES[16]  # of 64 ranks, too, where unequal parts of the full tensor are of interest
HALVES = ["reduce_scatter", "allgather"]
NODES, PER_NODE = 16, 4  # of the table of two levels
SCHEMES = ["balanced", "two_level"]


def name_of(ranks, workload, collective, scale):
    """The name of a file of results. Allreduces of 64 ranks are on another page, too."""
    if (ranks, collective) == (64, "allreduce"):
        return f"ranks-64-{workload}"
    return f"halves-{ranks}-{workload}-{collective}-{scale}"


def cases():
    """Ranks, workload and scale of each line of the table."""
    for workload in WORKLOADS:
        for ranks in RANKS:
            yield ranks, workload, SCALES[ranks][workload]
        yield 64, workload, FINE[workload]


def levels_name_of(workload):
    return f"halves-{NODES}x{PER_NODE}-{workload}"


def contiguous_name_of(ranks, workload):
    return f"halves-{ranks}-{workload}-contiguous"


def contiguous_measurements():
    """A reduce_scatter with contiguous parts, most of whose elements are in the first ones."""
    for workload in WORKLOADS:
        for ranks in SCALES:
            scale = SCALES[ranks][workload]
            words = f"bench/simulate -n {ranks} -r 25 -s {scale} -- --workload {workload}"
            words += " --collective reduce_scatter -n 1 -w 1 --check 0 --alone"
            words += " -S balanced,recursive_halving,auto"
            yield contiguous_name_of(ranks, workload), words.split()


def measurements():
    yield from contiguous_measurements()
    for workload in WORKLOADS:
        words = f"bench/simulate -n {NODES} -k {PER_NODE} -r 25 -s {FINE[workload]} -- --workload {workload}"
        words += f" --collective reduce_scatter --block 1 -n 1 -w 1 --check 0 --alone -S {','.join(SCHEMES)}"
        yield levels_name_of(workload), words.split()
    for ranks, workload, scale in cases():
        fine = ranks == 64 and scale == FINE[workload]
        for collective in HALVES[:1] if fine else HALVES if ranks == 64 else [*HALVES, "allreduce"]:
            words = f"bench/simulate -n {ranks} -r 25 -s {scale} -- --workload {workload}"
            words += f" --collective {collective}" + " --block 1" * (collective in HALVES)
            words += " -n 1 -w 1 --check 0 --alone -S balanced"
            yield name_of(ranks, workload, collective, scale), words.split()


def row_of(*case):
    rows = rows_of(name_of(*case))
    return next((row for row in rows if row["scheme"] == "balanced"), None)


def over_floor(row):
    """Time over that of the least bytes and of one latency."""
    return row["median_s"] / (row["bytes_floor"] / rate_of(row) + latency_of(row))


def both_over_allreduce(ranks, workload, scale):
    """Time of both halves over that of an allreduce by `balanced`."""
    rows = [row_of(ranks, workload, half, scale) for half in [*HALVES, "allreduce"]]
    if None in rows:
        return float("nan")
    scatter, gather, whole = (row["median_s"] for row in rows)
    return (scatter + gather) / whole


def halves():
    head = ["workload", "ranks", "scale"]
    head += ["reduce_scatter, ms", "over its floor", "largest part / mean"]
    head += ["allgather, ms", "over its floor", "both / allreduce"]
    lines = []
    for ranks, workload, scale in cases():
        scatter, gather = (row_of(ranks, workload, half, scale) for half in HALVES)
        if scatter is None:
            continue
        cells = [number(scatter["median_s"] * 1e3), number(over_floor(scatter), 3)]
        cells += [number(scatter["push_imbalance"])]
        of_gather = [gather["median_s"] * 1e3, over_floor(gather)] if gather else [float("nan")] * 2
        cells += [number(of_gather[0]), number(of_gather[1], 3)]
        both = number(both_over_allreduce(ranks, workload, scale), 3)
        lines.append([workload, ranks, scale, *cells, both])
    return table(head, lines)


def levels_of(workload):
    """Rows of a reduce_scatter on nodes of several ranks, by scheme."""
    return {row["scheme"]: row for row in rows_of(levels_name_of(workload))}


def halves_levels():
    lines = []
    for workload in WORKLOADS:
        found = levels_of(workload)
        times = {scheme: row["median_s"] for scheme, row in found.items() if scheme in SCHEMES}
        if len(times) == len(SCHEMES):
            cells = [number(times[scheme] * 1e3) for scheme in SCHEMES]
            lines.append([workload, *cells, number(times["balanced"] / times["two_level"])])
    return table(["workload", "`balanced`, ms", "`two_level`, ms", "ratio"], lines)


def contiguous_of(ranks, workload):
    """Seconds of a reduce_scatter of contiguous parts by scheme, and of an allreduce by `balanced`."""
    times = {row["scheme"]: row["median_s"] for row in rows_of(contiguous_name_of(ranks, workload))}
    whole = row_of(ranks, workload, "allreduce", SCALES[ranks][workload])
    return {**times, "allreduce": whole["median_s"] if whole else math.nan}


def halves_contiguous():
    head = ["workload", "ranks", "`balanced`, ms", "`recursive_halving`, ms", "ratio"]
    head += ["allreduce by `balanced`, ms", "`auto`, ms"]
    lines = []
    for workload in WORKLOADS:
        for ranks in SCALES:
            times = contiguous_of(ranks, workload)
            if "balanced" not in times:
                continue
            names = ["balanced", "recursive_halving", "allreduce", "auto"]
            push, halving, whole, auto = (number(times[name] * 1e3) for name in names)
            ratio = number(times["balanced"] / times["recursive_halving"])
            lines.append([workload, ranks, push, halving, ratio, whole, auto])
    return table(head, lines)


PARTS = [halves, halves_contiguous, halves_levels]
