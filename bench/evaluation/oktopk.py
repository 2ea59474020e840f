# SPDX-License-Identifier: BSD-3-Clause
"""Lower bounds of Ok-Topk as its paper has it, for bench/evaluate: scheme `oktopk` leaves out data balancing
and the global threshold."""

import math

from evaluation.figures import floor_of, latency_of, number, rate_of, rows_of, table, times_of

WORKLOADS = ["lstm", "deepfm", "nmt", "llama"]
COORDINATE = 8  # bytes of an index and a value


def row_of(workload):
    return next(row for row in rows_of(f"coo-{workload}") if row["scheme"] == "oktopk")


def volumes_of(row):
    """Elements through the busiest link: of the push, of data balancing and of a balanced allgather."""
    n, others = row["ranks"], (row["ranks"] - 1) / row["ranks"]
    push = row["nnz_in_mean"] * others * row["push_imbalance"]
    return push, (row["pull_imbalance"] - 1) * row["nnz_out"] / n, row["nnz_out"] * others


def seconds_of(row, bytes_of_element):
    """The bytes over the rate, one latency for the push and one for balancing, and those of recursive
    doubling."""
    latencies = 2 + math.log2(row["ranks"])
    return sum(volumes_of(row)) * bytes_of_element / rate_of(row) + latencies * latency_of(row)


def with_formats(row):
    """The bound if an element takes as many bytes as in the floor."""
    n = row["ranks"]
    elements = (n - 1) / n * (row["nnz_in_mean"] + row["nnz_out"])
    return seconds_of(row, row["bytes_floor"] / elements)


def threshold_bytes(row):
    """The most that the paper's algorithm sends with a global threshold: 6 k (n - 1) / n words, with k as
    many elements as a rank has."""
    return 24 * row["nnz_in_mean"] * (row["ranks"] - 1) / row["ranks"]


def oktopk_in_full():
    head = ["workload", "`oktopk`, ms", "with balancing, ms", "MB of push, balancing and allgather"]
    head += ["MB with a global threshold, at most", "formats chosen, ms", "over `balanced`", "over the floor"]
    lines = []
    for workload in WORKLOADS:
        if not rows_of(f"coo-{workload}"):
            continue
        row, scale = row_of(workload), row_of(workload)["scale"] / 1e6
        parts = [number(COORDINATE * x * scale, 0) for x in volumes_of(row)]
        chosen = with_formats(row)
        figures = [row["median_s"] * 1e3, seconds_of(row, COORDINATE) * 1e3]
        line = [workload] + [number(x, 1) for x in figures] + [" + ".join(parts)]
        line += [number(threshold_bytes(row) * scale, 0), number(chosen * 1e3, 1)]
        line += [number(chosen / times_of(f"speedup-{workload}")["balanced"])]
        lines.append(line + [number(chosen / floor_of(row))])
    return table(head, lines)


PARTS = [oktopk_in_full]
