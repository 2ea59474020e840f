# SPDX-License-Identifier: BSD-3-Clause
"""Lines of the tables of doc/performance.md, for tests/bench/evaluation.py."""

import statistics

from evaluation.figures import LIMITS, rows_of
from sentences import real

MPIS = ("mpich", "openmpi")


def digits(x):
    return f"{x:.0f}" if x >= 100 else f"{x:#.3g}".rstrip(".")


def median(values):
    return digits(statistics.median(values))


def of_mpis():
    """Lines of the table of MPICH and Open MPI in doc/performance.md: medians over runs, which took turns."""
    found = {mpi: [row for row in rows_of(f"allreduce-{mpi}") if row["scheme"] == "auto"] for mpi in MPIS}
    for interface, count, words in (
        ("coo", 10**6, "coordinates, 10⁶"),
        ("coo", 16 * 10**6, "coordinates, 1.6·10⁷"),
        ("dense", 16 * 10**6, "dense buffers, 1.6·10⁷"),
    ):
        runs, line = [], [f"| {words}, 1 %"]
        for mpi in MPIS:
            of = [row for row in found[mpi] if (row["interface"], row["count"]) == (interface, count)]
            runs.append([row["dense_median_s"] for row in of])
            gains = [row["dense_median_s"] / row["median_s"] for row in of]
            line += [f"{1e3 * statistics.median(row['median_s'] for row in of):#.3g}"]
            line += [f"{statistics.median(gains):#.3g}".rstrip(".")]
        ratios = [there / here for here, there in zip(*runs)]
        yield " | ".join([*line, real(statistics.median(ratios)) + " |"])
    ran = [row["ran"] for mpi in MPIS for row in found[mpi]]
    yield f"`auto` ran `shared` in {ran.count('shared')} of the {len(ran)} cases"


def by_case(name):
    """The runs of each case of a file, whose rows are labelled "CASE, run N": rows by scheme."""
    cases = {}
    for row in rows_of(name):
        case, _, run = row["label"].rpartition(", run ")
        cases.setdefault(case, {}).setdefault(run, {})[row["scheme"]] = row
    return {case: list(runs.values()) for case, runs in cases.items()}


def next_of(runs):
    """How many times as long the fastest other scheme takes, and its name in most runs."""
    found = []
    for rows in runs:
        others = [(row["median_s"], s) for s, row in rows.items() if s not in ("shared", "dense", *LIMITS)]
        seconds, scheme = min(others)
        found.append((seconds / rows["shared"]["median_s"], scheme))
    return f"{median(times for times, _ in found)}, {statistics.mode(scheme for _, scheme in found)}"


def gains_of(runs):
    return [rows["shared"]["dense_median_s"] / rows["shared"]["median_s"] for rows in runs]


def of_points():
    """Lines of the first table."""
    for case, runs in by_case("points-2").items():
        ours = [rows["shared"] for rows in runs]
        words = case.removeprefix("2 ranks, ").replace("dense", "dense buffers").replace(" at ", ", ")
        words = words if words.startswith(("dense", "text")) else f"coordinates, {words}"
        cells = [words, median(1e3 * row["median_s"] for row in ours), median(gains_of(runs))]
        cells += [median(row["median_s"] / row["memory_median_s"] for row in ours), next_of(runs)]
        yield f"| {' | '.join(cells)} |"


def of_threads():
    """Lines of the table of threads."""
    found = by_case("node-threads")
    for words in dict.fromkeys(case.partition(": ")[0] for case in found):
        cases = ("1 rank, 1 thread", "1 rank, 2 threads", "2 ranks, 1 thread")
        one, two, ranks = ([r["balanced"]["median_s"] for r in found[f"{words}: {case}"]] for case in cases)
        gain = real(statistics.median(a / b for a, b in zip(one, two)))
        times = [median(1e3 * t for t in seconds) for seconds in (one, two, ranks)]
        yield f"| {words} | {times[0]} | {times[1]} | {gain} | {times[2]} |"


PARTS = [of_mpis, of_points, of_threads]
