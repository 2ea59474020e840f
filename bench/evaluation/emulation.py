# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of bench/emulate beside simulations of the same tensors, for bench/evaluate."""

import math

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


def runs_of(name, cluster):
    """For each scheme the row with most elements and calls, and its time over that of `balanced` there."""
    rows = [r for r in rows_of(f"emulated-{name}-{cluster}") if r["scheme"] not in LIMITS]

    def run_of(row):
        return row["count"], row["iterations"]

    ours = {run_of(r): r["median_s"] for r in rows if variant_of(r) == "balanced"}
    rows.sort(key=run_of)
    return {variant_of(r): (r, r["median_s"] / ours[run_of(r)]) for r in rows}


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
