# SPDX-License-Identifier: BSD-3-Clause
"""The page on what simulations assume, varied one at a time: measurements and parts, for bench/evaluate."""

import math

from evaluation.figures import dense_of, number, rows_of, table, times_of

RANKS, RATE = 16, 25
SCALES = {"lstm": 256, "llama": 64}
SMALL = "small"  # a vector of 100 000 elements, 1 % of which are there: latencies count
SCHEMES = "balanced,auto,recursive_doubling,split_allgather,dense"
LATENCIES = [1, 5, 10, 20, 50]
NETWORKS = {"racks": "--rack 4 --core 1", "core": "--rack 4 --core 4", "slow": "--slow 4"}
LATE_US = 5000
UNEQUAL = 10
EVEN = "even"  # a vector whose every part has room for ten times as many elements
RANK_OPTIONS = {
    "late": f"--late {LATE_US}",
    "jitter": f"--jitter {LATE_US}",
    "unequal": f"--unequal {UNEQUAL}",
}
DRIFT = 0.125  # of the vector, in each step
DRIFTING = "balanced,auto,oktopk,recursive_doubling"
SEEDS = [42, 1, 2, 3, 4]  # the first is that of the other pages
SEED_SCALES = {"lstm": 64, "deepfm": 64, "nmt": 32, "llama": 8}
SEED_SCHEMES = "balanced,auto,recursive_doubling,allgather"


def tensor_of(workload):
    sizes = {SMALL: "-c 100k -d 0.01", EVEN: "-c 2M -d 0.01 --overlap 0.1"}
    return sizes.get(workload, f"--workload {workload}")


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
    for name, options in (("latency-10", ""), ("unequal", RANK_OPTIONS["unequal"])):
        yield f"sensitivity-{EVEN}-{name}", simulation(EVEN, SCHEMES, options=options)
    for workload in SCALES:
        for name, network in NETWORKS.items():
            yield f"sensitivity-{workload}-{name}", simulation(workload, SCHEMES, network)
        for name, options in RANK_OPTIONS.items():
            yield f"sensitivity-{workload}-{name}", simulation(workload, SCHEMES, options=options)
        for name, drift in (("still", 0), ("drift", DRIFT)):
            calls = simulation(workload, DRIFTING, options=f"--drift {drift}", calls="-n 7 -w 1")
            yield f"sensitivity-{workload}-{name}", calls
    for workload, scale in SEED_SCALES.items():
        for seed in SEEDS:
            options = f"--seed {seed}"
            yield f"seed-{workload}-{seed}", simulation(workload, SEED_SCHEMES, "", options, scale=scale)


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
                lines.append([workload, words[case]] + cells_of(name, base))
    return table(["workload", "case", "`balanced`, ms", "over the first"] + HEAD, lines)


def by_network():
    words = {"": "one switch", "racks": "racks, core 1:1", "core": "racks, core 4:1", "slow": "one slow link"}
    return compared(["", *NETWORKS], words)


def by_ranks():
    late = f"{LATE_US / 1000:g} ms"
    words = {
        "": "all alike",
        "late": f"one rank {late} late",
        "jitter": f"each up to {late} late",
        "unequal": "one with 10 times, one with none",
    }
    return compared(["", *RANK_OPTIONS], words)


def by_drift():
    lines = []
    for workload in SCALES:
        still, drift = [times_of(f"sensitivity-{workload}-{name}") for name in ("still", "drift")]
        for scheme in filter(drift.__contains__, still):
            times = [still[scheme], drift[scheme]]
            cells = [number(t * 1e3) for t in times] + [number(times[1] / times[0])]
            lines.append([workload, scheme] + cells)
    return table(["workload", "scheme", "still, ms", "drifting, ms", "ratio"], lines)


def files_of_seeds(workload):
    return [f"seed-{workload}-{seed}" for seed in SEEDS]


def interval(values):
    """Mean and half the width of the 95 % interval of Student's distribution, of five values."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return mean, 2.776 * deviation / math.sqrt(len(values))


def by_seed():
    head = ["workload", "`balanced` over dense", "`auto` over dense", "recursive doubling over dense"]
    lines = []
    for workload in SEED_SCALES:
        found = [rows_of(name) for name in files_of_seeds(workload)]
        if not all(found):
            continue
        cells = []
        for scheme in ("balanced", "auto", "recursive_doubling"):
            rows = [next(row for row in rows if row["scheme"] == scheme) for rows in found]
            mean, half = interval([dense_of(row) / row["median_s"] for row in rows])
            cells.append(f"{mean:.2f} ± {half:.2f}")
        ratios = [
            next(r for r in rows if r["scheme"] == "recursive_doubling")["median_s"]
            / next(r for r in rows if r["scheme"] == "balanced")["median_s"]
            for rows in found
        ]
        mean, half = interval(ratios)
        lines.append([workload] + cells + [f"{mean:.3f} ± {half:.3f}"])
    return table(head + ["recursive doubling / `balanced`"], lines)


PARTS = [by_latency, by_network, by_ranks, by_drift, by_seed]
