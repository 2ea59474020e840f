# SPDX-License-Identifier: BSD-3-Clause
"""The paper's case study, NMT in coordinates, by bytes on as many ranks as it has, for bench/evaluate."""

from evaluation.figures import number, rows_of, table

RANKS = [8, 16, 32, 64, 128]
COORDINATE, VALUE = 8, 4  # bytes


def file_of(ranks):
    return {64: "ranks-64-nmt", 128: "ranks-128-nmt"}.get(ranks, f"scaling-coo-{ranks}")


def density_of(ranks):
    """The density of the sum of so many ranks, from any row."""
    row = rows_of(file_of(2 if ranks == 1 else ranks))[0]
    return row["density"] if ranks == 1 else row["nnz_out"] / row["count"]


def over_dense(ranks):
    """Bytes that a rank sends in coordinates, over those of a dense ring: of balanced parts, of recursive
    doubling, and of AGsparse."""
    others = (ranks - 1) / ranks
    dense = 2 * others * VALUE
    stages = [density_of(2**i) for i in range(ranks.bit_length() - 1)]
    balanced = others * (density_of(1) + density_of(ranks))
    gathered = (ranks - 1) * density_of(1)
    return [COORDINATE * x / dense for x in (balanced, sum(stages), gathered)]


def case_study():
    head = ["ranks", "balanced parallelism", "recursive doubling", "AGsparse"]
    return table(head, [[n] + [number(x) for x in over_dense(n)] for n in RANKS])


PARTS = [case_study]
