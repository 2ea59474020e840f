# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of bench/emulate beside simulations of the same tensors, for bench/evaluate."""

import math
import statistics

from evaluation.figures import LIMITS, PEERS, number, rows_of, table, times_of, variant_of

NAMES = ["lstm", "deepfm", "nmt", "top5"]
TEXTS = {"text64": 64, "text512": 512}  # basic values of a row
CLUSTERS = ["16", "8", "4", "4x4"]  # hosts, and ranks of each unless one


def emulations():
    """For each emulated tensor: the name of a file of results and the command that simulates the tensor."""
    for name in NAMES:
        for cluster in CLUSTERS:
            largest = max(rows_of(f"emulated-{name}-{cluster}"), key=lambda row: row["count"], default=None)
            if largest is not None:
                near = largest["ranks"] // largest["nodes"]
                tensor = "-c {count} -d {density:.4f} --overlap {overlap} --skew {skew}".format(**largest)
                nodes = f"-n {largest['nodes']}" + (f" -k {near} -s 16" if near > 1 else " -s 64")
                command = f"bench/simulate {nodes} -r 0.2 -l 50 -- {tensor}"
                yield f"like-{name}-{cluster}", command.split(), near > 1


def text_emulations(text):
    """For each emulated text: the name of a file of results, and the command that simulates it."""
    for name in TEXTS if text else []:
        for cluster in CLUSTERS:
            found = rows_of(f"emulated-{name}-{cluster}")
            if found:
                near = found[0]["ranks"] // found[0]["nodes"]
                nodes = f"-n {found[0]['nodes']} -k {near} -r 0.2 -l 50"
                schemes = "balanced," + ("two_level," if near > 1 else "") + PEERS
                tensor = f"--workload text:{text.name} -R {TEXTS[name]} --columns auto,1"
                command = f"bench/simulate {nodes} -- {tensor} -n 1 -w 1 --check 0 --alone -S {schemes}"
                yield f"like-{name}-{cluster}", command.split()


def run_of(row):
    """Rows of one run have as many elements and calls."""
    return row["count"], row["iterations"]


def runs_of(name, cluster):
    """For each scheme the run of median time, of those with most elements and calls; and that time over the
    time of such a run of `balanced`."""
    rows = [r for r in rows_of(f"emulated-{name}-{cluster}") if r["scheme"] not in LIMITS]
    found = {}
    for row in rows:
        found.setdefault((variant_of(row), run_of(row)), []).append(row)
    middle = {key: statistics.median_low([r["median_s"] for r in some]) for key, some in found.items()}
    best = {}
    for scheme, run in sorted(found):
        time = middle[scheme, run]
        row = next(r for r in found[scheme, run] if r["median_s"] == time)
        best[scheme] = row, time / middle["balanced", run]
    return best


def ratios_of_runs(name, cluster, scheme):
    """The time of a scheme over that of `balanced`, in each run with most calls."""
    rows = [r for r in rows_of(f"emulated-{name}-{cluster}") if r["scheme"] not in LIMITS]
    most = max(map(run_of, rows))
    ours, theirs = (
        [r["median_s"] for r in rows if run_of(r) == most and variant_of(r) == variant]
        for variant in ("balanced", scheme)
    )
    return [theirs / ours for ours, theirs in zip(ours, theirs)]


def cell_of(found, simulated, scheme):
    """The cell of a scheme: its time on the emulated network, and on a simulated one."""
    if scheme not in found:
        return "-"
    row, ratio = found[scheme]
    replay = f" ({number(row['over_skeleton'])})" if row["over_skeleton"] else ""
    there = simulated.get(scheme, math.nan)
    if scheme == "balanced":
        return f"{row['median_s'] * 1e3:.0f} ms{replay}, {number(there * 1e3, 0)} ms"
    return f"{number(ratio)}{replay}, {number(there / simulated.get('balanced', math.nan))}"


def beside_simulated(names):
    """Emulated runs beside simulated ones: a table for each cluster."""
    parts = []
    for cluster in CLUSTERS:
        found = {name: runs_of(name, cluster) for name in names}
        found = {name: runs for name, runs in found.items() if runs}
        if not found:
            continue
        simulated = {name: times_of(f"like-{name}-{cluster}") for name in found}
        lines = []
        first = next(iter(found.values()), {})
        for scheme in sorted(first, key=lambda s: first[s][1]):
            lines.append([scheme] + [cell_of(found[m], simulated[m], scheme) for m in found])
        parts.append(table([f"{cluster} hosts"] + list(found), lines))
    return "\n".join(parts) if parts else table([], [])


def emulated():
    return beside_simulated(NAMES)


def emulated_rows():
    return beside_simulated(TEXTS)
