# SPDX-License-Identifier: BSD-3-Clause
"""Short calls: the choices of auto for vectors of a hundred to a million elements, for bench/evaluate."""

from evaluation.figures import LIMITS, number, rows_of, table

RANKS = [4, 8, 16, 32]
COUNTS = {100: "10²", 1000: "10³", 10_000: "10⁴", 100_000: "10⁵", 1_000_000: "10⁶"}
DENSITIES = [0.01, 0.1]
SCHEMES = (
    "balanced,auto,recursive_doubling,split_allgather,allgather,oktopk,sparse_ps,hybrid,ring,omni,split_dense"
)
MANY, FEW = 32, 10_000  # ranks; all schemes and more elements take too long to simulate there
NEAREST = "balanced,auto,recursive_doubling,split_allgather,allgather,oktopk"


def measurements():
    for n in RANKS:
        schemes = SCHEMES if n < MANY else NEAREST
        counts = [count for count in COUNTS if n < MANY or count <= FEW]
        words = f"bench/simulate -n {n} -r 25 -- -c {','.join(map(str, counts))} -d 0.01,0.1"
        yield f"short-{n}", [*words.split(), *f"-n 1 -w 1 --check 0 --alone -S {schemes}".split()]


def calls_of(ranks):
    """The rows of each tensor, by scheme."""
    found = {}
    for row in rows_of(f"short-{ranks}"):
        if row["scheme"] not in LIMITS:
            tensor = row["count"], min(DENSITIES, key=lambda d: abs(d - row["density"]))
            found.setdefault(tensor, {})[row["scheme"]] = row
    return found


def over_best(calls):
    """Time of `auto` over that of the fastest other scheme."""
    return calls["auto"]["median_s"] / min(row["median_s"] for s, row in calls.items() if s != "auto")


def short_calls():
    lines = []
    for n in RANKS:
        found = calls_of(n)
        for density in DENSITIES if found else []:
            cells = [found.get((count, density)) for count in COUNTS]
            words = [f"{c['auto']['ran']} ({number(over_best(c))})" if c else "-" for c in cells]
            lines.append([n, f"{100 * density:g} %", *words])
    return table(["ranks", "density", *COUNTS.values()], lines)


PARTS = [short_calls]
