# SPDX-License-Identifier: BSD-3-Clause
"""Broadcasts of changed weights: measurements and their table, for bench/evaluate."""

from evaluation.figures import number, rows_of, table

RANKS = [16, 64]
WEIGHTS, DENSITY = 100_000_000, 0.01
RATE = 25e9 / 8  # bytes a second
LEVELS, LEVELS_RATE = "bcast-4x4", 5e6 / 8  # emulated hosts of 4 ranks
METHODS = {
    "delta": "`MPIX_Sparse_bcast_delta`",
    "coo": "`MPIX_Sparse_bcast_coo`",
    "lists": "lists of indices and values by MPI_Bcast",
    "dense": "all weights by MPI_Bcast",
}


def name_of(ranks):
    return f"bcast-{ranks}"


def measurements():
    for ranks in RANKS:
        words = f"bench/simulate -n {ranks} -r 25 -s 1 -p 0.02 -- --study bcast"
        words += f" -c {WEIGHTS} -t uint16 -d {DENSITY} -n 1 -w 1"
        yield name_of(ranks), words.split()


def over_floor(row, rate=RATE):
    """Time over that of the values and of the entropy of their indices, once over a link."""
    return row["median_s"] * rate / row["floor"]


def times_of(ranks):
    return {row["method"]: row["median_s"] for row in rows_of(name_of(ranks))}


def broadcasts():
    lines = []
    for ranks in RANKS:
        for row in rows_of(name_of(ranks)):
            cells = [number(row["median_s"] * 1e3), number(over_floor(row))]
            lines.append([ranks, METHODS[row["method"]]] + cells)
    return table(["ranks", "broadcast", "ms", "over the floor"], lines)


def broadcasts_levels():
    """On emulated hosts of several ranks."""
    lines = []
    for row in rows_of(LEVELS):
        over = over_floor(row, LEVELS_RATE)
        lines.append(
            [METHODS[row["method"]], number(row["median_s"] * 1e3, 0), number(over, 2 if over < 10 else 0)]
        )
    return table(["broadcast", "ms", "over the floor"], lines)


PARTS = [broadcasts, broadcasts_levels]
