#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Test doc/evaluation.md, the pages in doc/evaluation and a table of doc/performance.md against
bench/results: their tables equal those of bench/evaluate, and the figures in their text follow from these
results. Figures that were measured once and not stored are not checked."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import itertools
import pathlib
import statistics
import sys
import tempfile
import unittest.mock

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))
sys.dont_write_bytecode = True

from evaluation import compute, crossover, rows, sensitivity, traces, training  # noqa: E402
from evaluation.compute import SIZES, STEPS, gain, name_of, over_dense  # noqa: E402
from evaluation.emulation import NAMES, ratios_of_runs, runs_of  # noqa: E402
from evaluation.figures import dense_of, floor_of, rows_of, times_of  # noqa: E402
from evaluation.rows import TABLES  # noqa: E402
import assumptions  # noqa: E402
import baselines  # noqa: E402
import claims  # noqa: E402
import collectives  # noqa: E402
import devices  # noqa: E402
import node  # noqa: E402
from sentences import percent, real, row_of, span, time_of  # noqa: E402

CELLS = list(itertools.product(compute.SIZES, compute.RATES, compute.THREADS))
STUDIED = ["lstm", "deepfm", "nmt", "llama"]
OURS = ["balanced", "auto", "dense", "two_level"]
COO, BITMAP, CHOSEN, FOUR, PIPELINED = STEPS[1], STEPS[3], STEPS[4], STEPS[5], STEPS[6]


def load_evaluate():
    """bench/evaluate, without its drawings."""
    loader = importlib.machinery.SourceFileLoader("evaluate", str(TOP / "bench" / "evaluate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("evaluate", loader))
    loader.exec_module(module)
    crossover.draw_map = (
        lambda found: "![Predicted gain over dense by rate and density](evaluation/crossover.svg)\n"
    )
    training.draw_timeline = (
        lambda found: "![A step of training in each way](evaluation/training-timeline.svg)\n"
    )
    sensitivity.draw = lambda: f"![{sensitivity.ALT}](evaluation/sensitivity.svg)\n"
    traces.draw = (
        lambda found: "![Overlaps of pairs of ranks, and shares of parts, in traces](evaluation/traces.svg)\n"
    )
    for home in (module, compute, rows):
        home.save = lambda axes, name, alt: f"![{alt}](evaluation/{name}.svg)\n"
        home.new_axes = home.lines_of = home.bars_of = unittest.mock.MagicMock()
    return module


def peers_of(name):
    return {scheme: time for scheme, time in times_of(name).items() if scheme not in OURS}


def ahead_of_peers(name):
    """Time of the fastest other scheme as a multiple of `balanced`."""
    return min(peers_of(name).values()) / time_of(name)


def with_peers():
    near, fewer = {}, set()
    for model in STUDIED:
        for ranks in (16, 64, 128):
            name = f"speedup-{model}" if ranks == 16 else f"ranks-{ranks}-{model}"
            near[name] = time_of(name) / floor_of(row_of(name))
            fewer |= {name} if len(peers_of(name)) != 9 or ahead_of_peers(name) < 1 else set()
    if not fewer and max(near.values()) <= 1.12:
        yield "faster than every peer, all nine of them, at 16, 64 and 128 ranks"
        yield "and within 1.12 of the floor"
    else:
        yield f"peers ahead in {sorted(fewer)}, {max(near.values())} of the floor"
    few = [ahead_of_peers(f"scaling-{n}") for n in (2, 3, 4)]
    yield f"recursive doubling or `allgather` takes {span(few)} times as long with NMT"
    words = f"recursive doubling or `allgather` takes {span(few)} times as long as `balanced`"
    yield f"{words} with NMT on 2 to 4"
    yield f"and {real(ahead_of_peers('rows-ranks-2'))} times with rows on 2"
    scales = [dense_of(row_of(f"speedup-{m}")) / time_of(f"speedup-{m}") for m in ("opt", "llama")]
    yield f"So their figures are {real(scales[0])} and not {real(scales[1])}"
    gathered = row_of("scaling-2", "allgather")
    yield f"allgather takes {real(gathered['median_s'] / floor_of(gathered))} times the floor on 2"
    formats = [time_of(f"speedup-{m}", "recursive_doubling") / time_of(f"speedup-{m}") for m in STUDIED]
    coo = [time_of(f"coo-{m}", "recursive_doubling") / time_of(f"speedup-{m}") for m in STUDIED]
    yield f"it is {span(formats, 1)} times as fast as recursive doubling with our formats"
    yield f"{min(coo):.0f} to {max(coo):.1f} times as fast as recursive doubling in coordinates"
    scaled = [row["push_imbalance"] for m in STUDIED for row in [row_of(f"ranks-128-{m}")]]
    more = [row_of(f"scaling-{n}")["push_imbalance"] for n in (256, 512, 1024)]
    yield f"the fullest part has {span(scaled)} times the mean of a push on 128 ranks"
    yield f"and {span(more)} times on 256 to 1024"
    sets = [{n: rows_of(f"gamma-{m}-{n}")[0]["gamma"] for n in (2, 4, 8, 16)} for m in STUDIED]
    bounds = [(1 + g[2] + g[4] + g[8]) / (15 / 16 * (1 + g[16])) for g in sets]
    yield f"The workloads' overlaps make that {span(bounds, 1)} at 16 ranks"


def on_ranks():
    at = {n: time_of(f"scaling-coo-{n}") for n in (16, 32)}
    dense = {n: dense_of(row_of(f"scaling-coo-{n}")) for n in at}
    chosen = {16: time_of("speedup-nmt"), 32: time_of("scaling-32")}
    yield f"`balanced` takes {at[16] * 1e3:.0f} ms on 16 ranks and {at[32] * 1e3:.0f} on 32,"
    yield f"{percent(at[16] / dense[16])} and {percent(at[32] / dense[32])} % of dense"
    yield f"and {at[16] / chosen[16]:.2f} and {at[32] / chosen[32]:.2f} times what it takes with the formats"
    ahead = {n: real(ahead_of_peers(f"scaling-coo-{n}")) for n in (12, 16, 24, 32)}
    few = [ahead_of_peers(f"scaling-coo-{n}") for n in (2, 3, 4)]
    yield f"takes {ahead[16]} and {ahead[32]} times as long on 16 and 32"
    yield f"{ahead[12]} and {ahead[24]} times on 12 and 24"
    yield f"and {span(few)} times as long up to 4"
    rows = [row_of(f"scaling-{n}") for n in (256, 512, 1024)]
    near = [f"{row['median_s'] / floor_of(row):.2f} times" for row in rows]
    words = percent(rows[0]["header_bytes_sent_max"] / rows[0]["bytes_sent_max"])
    yield f"a rank sends {rows[0]['nnz_in_mean'] / 256:.0f} elements to another"
    yield f"The fullest part has {rows[0]['push_imbalance']:.2f} times the mean, and"
    yield f"headers are {words} % of all bytes"
    yield f"So `balanced` takes {near[0]} the floor"
    three = [f"{time_of('scaling-3', scheme) * 1e3:.2f}" for scheme in ("allgather", "balanced")]
    yield f"allgather takes {three[0]} ms there and `balanced` {three[1]} (NMT)"
    yield f"headers are an eighth: {near[1]}"
    yield f"headers are more than a third: {near[2]}"
    off = [percent(row["median_s"] / row["predicted_s"] - 1) for row in rows]
    yield f"foresees these times within {off[0]}, {off[1]} and {off[2]} %"


def by_steps():
    def rise(step, before):
        """For lstm and llama, with compute time."""
        times = [
            [time_of(name_of(model, which, True)) for model in ("lstm", "llama")] for which in (before, step)
        ]
        return [percent(old / new - 1) for old, new in zip(*times)]

    def foreseen(model):
        old, new = [row_of(name_of(model, step, True))["predicted_s"] for step in (CHOSEN, PIPELINED)]
        return percent(old / new - 1)

    bitmap, segments, four = rise(BITMAP, COO), rise(PIPELINED, CHOSEN), rise(FOUR, CHOSEN)
    hashed = [gain(name_of(m, COO, True), "balanced", True) for m in ("lstm", "llama")]
    ranges = [gain(name_of(m, STEPS[0], True), "balanced", True) for m in ("lstm", "llama")]
    yield f"which makes {bitmap[0]} % (lstm) and {bitmap[1]} % (llama) here"
    hash_gains = [f"{h / r:.1f}" for h, r in zip(hashed, ranges)]
    yield f"The hash is the longest step, {hash_gains[0]} and {hash_gains[1]} times with computing"
    yield f"longest step here too, {hash_gains[0]} (lstm) and {hash_gains[1]} times (llama) with computing"
    yield f"hashed coordinates make a call {hashed[0]:.1f} and {hashed[1]:.1f} times as fast as dense"
    chosen = [row_of(name_of(m, CHOSEN, True)) for m in ("lstm", "llama")]
    assert {(row["push_wire"], row["pull_wire"]) for row in chosen} == {("elias_fano", "hash_bitmap")}
    paper = [row_of(name_of(m, BITMAP, True))["median_s"] for m in ("lstm", "llama")]
    less = [percent(1 - row["median_s"] / time) for row, time in zip(chosen, paper)]
    yield f"which takes {less[0]} (lstm) and {less[1]} % (llama) less time"
    parts = [percent(row_of(name_of(m, STEPS[0], True))["push_imbalance"] / 16) for m in ("lstm", "llama")]
    yield f"leave one rank with {parts[0]} (lstm) and {parts[1]} % (llama) of the elements"
    yield f"Segments gain {segments[0]} % (lstm) and {segments[1]} % (llama)"
    yield f"The model foresees {foreseen('lstm')} % and {foreseen('llama')} %"
    whole = row_of(name_of("lstm", CHOSEN, True))
    pipelined = time_of(name_of("lstm", PIPELINED, True))
    yield f"of {whole['median_s'] * 1e3:.0f} ms in one segment {whole['charged_s'] * 1e3:.0f} are work"
    yield f"segments {pipelined * 1e3:.0f} are needed"
    yield f"with them segments gain {four[0]} % and {four[1]} %"
    levels = {}
    for name in ("lstm-computing", "llama-computing", "lstm", "llama"):
        one, two = row_of(f"levels-{name}"), row_of(f"levels-{name}", "two_level")
        levels[name] = [f"{one[key] / two[key]:.1f}" for key in ("median_s", "predicted_s")]
    times, says = zip(*levels.values())
    charged = [
        time_of(f"levels-{m}-computing") / time_of(f"levels-{m}-computing", "two_level")
        for m in ("lstm", "llama")
    ]
    words = f"{charged[0]:.2f} (lstm) or {charged[1]:.2f} (llama) times as fast as one with computing"
    yield f"Two levels are {words}"
    yield f"and {times[2]} or {times[3]} times without"
    yield f"the model says {says[0]} and {says[1]}, and {says[2]} and {says[3]}"


def of_studies():
    serial = {
        (r["memory"], r["hashes"]): r["serial_share"] for r in rows_of("study-hash") if r["method"] == "paper"
    }
    ours = next(
        r["serial_share"]
        for r in rows_of("study-hash")
        if (r["method"], r["memory"], r["hashes"]) == ("levels", 2, 4)
    )
    tight, ample = [[real(100 * serial[memory, k], 1) for k in (3, 4)] for memory in (2, 3)]
    words = f"{real(100 * ours, 1)} % with a memory for each hash, {tight[1]} % with one"
    yield rf"at r1 = 2 \|G\| d {words}"
    yield f"Here these are {tight[0]} % and {tight[1]} % of 40,000 elements"
    yield f"with r1 = 3 |G| d, {ample[0]} % and {ample[1]} %"
    lost = {r["memory"]: real(100 * r["loss"], 1) for r in rows_of("study-hash") if r["method"] == "strawman"}
    yield f"{lost[10]} and {lost[40]} % with that memory, 10 and 40 cells an element"
    yield f"{lost[2.5]} and {lost[10]} % with a quarter of it"
    balance = {(r["pattern"], r["partition"], r["recompute"]): r for r in rows_of("study-balance")}
    for name, words in (("hash", "They"), ("index_hash", "a hash of each index")):
        found = [
            r for r in rows_of("study-balance") if r["partition"] == name and (r["chosen"] or name != "hash")
        ]
        push, pull = [span([r[key] for r in found]) for key in ("push_mean", "pull_mean")]
        yield f"{words} push {push} and pull {pull}" if name == "hash" else f"{words} {push} and {pull}"
    once = balance["skewed", "recomputed", 1000]
    yield f"so that {once['push_mean']:.2f} and {once['pull_mean']:.2f} (skewed) are less than the paper's"


def computing():
    def cell(model, rate, threads):
        return row_of(f"threads-16-{model}-{rate}-{threads}")

    def over_floor(rate, threads):
        found = [cell(m, rate, threads) for m in SIZES]
        ratios = [row["median_s"] / floor_of(row) for row in found]
        return f"{min(ratios):.2f} to {max(ratios):.2f} times"

    yield f"At 25 Gb/s a call takes {over_floor(25, 1)} the floor, at 100 Gb/s {over_floor(100, 1)}"
    yield f"takes {over_floor(25, 16)} the floor at 25 Gb/s"
    yield f"{over_floor(100, 16)} at 100 Gb/s and {over_floor(400, 16)} at"
    lstm = cell("lstm", 100, 16)
    work, time = lstm["charged_s"] * 1e3, lstm["median_s"] * 1e3
    yield f"{work:.1f} ms of work and messages of at least {floor_of(lstm) * 1e3:.1f} ms"
    yield f"make a call of {time:.1f} ms"
    slower = [1 / over_dense(cell(m, 400, 1), 1) for m in ("deepfm", "nmt", "llama")]
    times = [f"{1 / s:.1f}" for s in slower]
    yield f"`balanced` is {times[0]} times as fast as dense with deepfm and {times[1]} times with nmt"
    yield f"With llama it is dense {slower[2]:.2f} times as fast as `balanced`"
    yield f"with llama it is {slower[2]:.2f} times as fast on one thread"
    both = "messages, and computing on one thread"
    for threads, words in ((1, "are found on one thread"), (16, "on 16 threads")):
        gains = [over_dense(cell(m, 25, threads), threads) for m in ("lstm", "deepfm", "llama")]
        yield f"{gains[0]:.1f}, {gains[1]:.1f} and {gains[2]:.1f} {words}"
        if threads == 1:
            yield f"{gains[0]:.1f} on 16 × 1, one thread"
            yield f"{gains[1]:.1f} on 16 × 1 |"
            every = [over_dense(cell(m, 25, threads), threads) for m in STUDIED]
            alone = [gain(f"speedup-{m}", "balanced", False) for m in STUDIED]
            data = "16 nodes, 25 Gb/s | coordinates, gradients of four models"
            yield f"{data} | {span(every, 1)} times | [simulation](doc/evaluation.md): {both}"
            yield f"{data} | {span(alone, 1)} times | simulation: messages only"
    llama = over_dense(cell("llama", 100, 1), 1)
    yield f"5 % of a dense model's gradient | {llama:.1f} times | simulation: {both}"
    near = best = 0
    for times in (times_of(f"threads-16-{m}-{r}-{t}") for m, r, t in CELLS):
        near += times["auto"] <= 1.05 * min(times.values())
        best += times["auto"] == min(times.values())
    yield f"within 5 % of the fastest in {near} of {len(CELLS)} calls, the fastest in {best}"
    rows_over = {s: [row_of(f"threads-16-{m}-{r}-{t}", s) for m, r, t in CELLS] for s in ("dense", "auto")}
    over_bound = {s: [1 / over_dense(row, c[2]) for row, c in zip(rows_over[s], CELLS)] for s in rows_over}
    yield f"takes {span(over_bound['dense'])} times the lower bound of dense algorithms"
    later = [times for times in over_bound["auto"] if times > 1]
    yield f"below the time of `auto` in {len(later)} of them: llama at 400 Gb/s on one thread"
    yield f"one thread takes {real(later[0])} times as long"
    model = [row["predicted_s"] / row["median_s"] for row in (cell(m, r, t) for m, r, t in CELLS)]
    yield f"prices of `balanced` are {span(model)} times the simulated times"
    batch = [time_of(name) / time_of(name, "recursive_doubling") - 1 for name in ("batch1coo", "batch1")]
    yield f"It is {percent(batch[0])} % faster here in coordinates"
    yield f"and {percent(batch[1])} % with the formats that are chosen"


def emulated():
    runs = {(m, c): runs_of(m, c) for m in NAMES for c in ("16", "8", "4", "4x4")}

    def over_ours(cluster, scheme):
        return [runs[m, cluster][scheme][1] for m in NAMES]

    def next_best(model, cluster):
        return min(over for scheme, (_, over) in runs[model, cluster].items() if scheme not in OURS)

    def skeletons(cluster, scheme="balanced"):
        return [runs[m, cluster][scheme][0]["over_skeleton"] for m in NAMES]

    def beside_simulated(clusters, scheme="balanced"):
        found = [(runs[m, c][scheme][0], time_of(f"like-{m}-{c}", scheme)) for m in NAMES for c in clusters]
        return [row["median_s"] / there for row, there in found], [
            row["skeleton_median_s"] / there for row, there in found
        ]

    best = {m: next_best(m, "16") for m in NAMES}
    yield f"first in all, {best['lstm']:.2f} (lstm) to {best['top5']:.2f} times (top5) ahead of the next, and"
    yield f"within {max(skeletons('16')):.2f} times its message replay"
    best = {m: next_best(m, "8") for m in NAMES}
    yield f"on 8 hosts {best['deepfm']:.2f} (deepfm) to {best['top5']:.2f} times (top5) ahead"
    yield f"ahead, within {max(skeletons('8')):.2f}."
    yield f"takes {span(over_ours('4', 'recursive_doubling'))} of its time here"
    yield f"hosts recursive doubling takes {span(over_ours('4', 'recursive_doubling'))} times as long"
    yield f"allgather takes {span(over_ours('4', 'allgather'))}, oktopk {span(over_ours('4', 'oktopk'))}"
    two = over_ours("4x4", "two_level")
    sent = [runs[m, "4x4"]["balanced"][0]["bytes_sent_max"] / 1e6 for m in NAMES]
    less = [runs[m, "4x4"]["two_level"][0]["bytes_sent_max"] / 1e6 for m in NAMES]
    ahead = {m: min(1, next_best(m, "4x4")) / runs[m, "4x4"]["two_level"][1] for m in NAMES}
    yield f"`two_level` takes {span(two)} of the time of `balanced`"
    yield f"and is {ahead['lstm']:.1f} (lstm) to {ahead['top5']:.1f} times (top5) ahead of the best scheme"
    yield f"a rank sends {span(less, 1)} MB of {span(sent, 1)}"
    yield f"It is within {span(skeletons('4x4', 'two_level'))} times its message replay"
    calls, alone = beside_simulated(["16", "8", "4"])
    yield f"calls of `balanced` take {span(calls)} times what is simulated"
    yield f"their replays {span(alone)} times"
    calls, _ = beside_simulated(["16", "8"], "recursive_doubling")
    yield f"Recursive doubling takes {span(calls)} times that on 8 and 16 hosts"


def of_emulated_rows():
    cells = [(name, cluster) for name in ("text64", "text512") for cluster in ("16", "8")]
    found = {cell: runs_of(*cell) for cell in cells}
    each = {s: {cell: ratios_of_runs(*cell, s) for cell in cells} for s in ("omni", "balanced, one column")}
    middle = {s: [statistics.median(x) for x in of.values()] for s, of in each.items()}
    first = min(map(min, middle.values())) > 1
    words = "in all four, by medians of five runs of 55 calls with rows of 64, and of three with rows of 512"
    yield words if first else f"first: {middle}"
    yield f"Cyclic `omni` takes {span(middle['omni'])} times as long as `balanced`"
    yield f"and one column {span(middle['balanced, one column'])} times"
    of_omni = each["omni"]
    long, short = ([x for c in cells if c[0] == n for x in of_omni[c]] for n in ("text512", "text64"))
    all_first = min(long) > 1 and len(long) == 6
    words = f"all six runs of `omni` are in this order, {span(long)} times"
    yield words if all_first else f"runs: {long}"
    seven_of_ten = len(short) == 10 and sum(x > 1 for x in short) == 7
    yield "seven of ten are" if seven_of_ten else f"runs: {short}"
    yield f"runs have {span(short)}"
    near = ["balanced", "balanced, one column", "omni"]
    others = [min(over for s, (_, over) in r.items() if s not in near) for r in found.values()]
    yield f"All others take {real(min(others))} times as long and more"
    sent = [[r[s][0]["bytes_sent_max"] for s in near] for r in found.values()]
    less = sorted(round(100 * (1 - row[0] / other)) for row in sent for other in row[1:])
    yield f"the chosen columns sends {less[0]} to {less[-1]} % fewer bytes"


def of_rows():
    at_16 = {case: rows.found_in(case.name(16)) for case in rows.CASES}

    def of_kinds(kinds):
        return [found for case, found in at_16.items() if {*kinds} <= {*case, TABLES[case.model].row}]

    def over_floor(*kinds):
        return [r["balanced"]["median_s"] / floor_of(r["balanced"]) for r in of_kinds(kinds)]

    def over_ours(scheme, *kinds):
        return [r[scheme]["median_s"] / r["balanced"]["median_s"] for r in of_kinds(kinds)]

    def next_best(*kinds):
        return [min(rows.others_of(r).values()) / r["balanced"]["median_s"] for r in of_kinds(kinds)]

    def pair(values, digits=2):
        return " and ".join(real(x, digits) for x in sorted(values))

    yield f"With rows of 512 on 16 ranks `balanced` takes {span(over_floor(512))} times the floor"
    yield f"The best other scheme takes {span(next_best(512))} times as long as `balanced`"
    yield f"and {pair(next_best(512, 'skewed', 'full'))} in skewed full batches"
    yield f"It takes {span(over_ours('recursive_doubling', 512, 'uniform'))} times as long there"
    yield f"Full batches take {span(over_floor(16, 'full'))} times the floor"
    regret = {}
    for case in rows.CASES:
        for ranks in rows.RANKS:
            times = [row["median_s"] for row in rows.found_in(case.name(ranks)).values()]
            auto = rows.found_in(case.name(ranks))["auto"]["median_s"]
            regret[ranks] = max(regret.get(ranks, 0), auto / min(times))
    most = [real(regret[ranks]) for ranks in rows.RANKS]
    yield f"`auto` takes at most {most[0]} times as long as the fastest measured on 16 ranks"
    yield f"and at most {most[1]} and {most[2]} times on 64 and 128"
    small = [r["balanced"]["median_s"] * 1e6 for r in of_kinds((16, str(rows.BATCH)))]
    yield f"such rows last {pair(small, 0)} us"
    yield f"on 16 ranks: {pair(over_floor(16, str(rows.BATCH)))} times the floor"
    yield f"`sparse_ps` takes {span(over_ours('sparse_ps', 'skewed'))} times as long as `balanced`"
    yield f"contiguous `omni` {span(over_ours('omni, contiguous', 'skewed'))} times"
    yield f"Cyclic `omni` takes {span(over_ours('omni', 512))} times with rows of 512"
    yield f"and {span(over_ours('omni', 16))} times with rows of 16, of which each is a block"


def of_ranks():
    found = {n: rows.found_in(rows.scaling_name(n)) for n in rows.SCALING}
    powers = [n for n in found if found[n] and n & (n - 1) == 0]
    near = {n: r["balanced"]["median_s"] / floor_of(r["balanced"]) for n, r in found.items() if r}
    several = {n: r for n, r in found.items() if len(r) > 2}
    least = {n: min(rows.others_of(r).values()) / r["balanced"]["median_s"] for n, r in several.items()}
    yield f"takes {span([near[n] for n in powers])} times the floor where ranks are a power of two"
    yield f"and {span([near[n] for n in near if n not in powers])} times elsewhere"
    yield f"On 2 ranks recursive doubling takes {real(least[2])} times as long"
    yield f"from {real(least[3])} times on 3 ranks to {real(least[max(least)])} times on {max(least)}"


def of_columns():
    gains = {}
    for case in rows.CASES:
        found = {row["columns_requested"]: row for row in rows_of(case.name(16, "computing"))}
        gains[case] = (found["1"]["median_s"] / found["auto"]["median_s"] - 1, found["auto"]["columns"])
    wide = [gain for case, (gain, _) in gains.items() if TABLES[case.model].row == 512]
    narrow = sorted(found for case, found in gains.items() if case[::2] == ("deepfm", "full"))
    whole = {columns for case, (_, columns) in gains.items() if case[::2] == ("deepfm", str(rows.BATCH))}
    yield f"Columns gain {percent(min(wide))} to {percent(max(wide))} % with rows of 512"
    yield f"they gain {' and '.join(percent(gain) for gain, _ in narrow)} % in full batches"
    yield f"of which {' and '.join(str(columns) for _, columns in narrow)} columns are chosen"
    yield f"small batches of them {'stay whole' if whole == {1} else f'have {whole} columns'}"
    texts = [rows.found_in(f"rows-text-{words}-{width}") for width in rows.WIDTHS for words in rows.WORDS]
    near = [found["balanced"]["median_s"] / floor_of(found["balanced"]) for found in texts]
    best = [min(rows.others_of(found).values()) / found["balanced"]["median_s"] for found in texts]
    yield f"`balanced` takes {span(near)} times the floor, which counts the mean"
    yield f"The next takes {span(best)} times as long"


def runs_of_text(evaluate, folder, again):
    """What bench/evaluate would run to measure batches of a text; the results are written as if it had."""
    text = folder / "somewhere" / "text"
    options = {"perf": "perf", "build": folder, "text": text, "only": "rows-text-*", "again": again}

    def write_result(words, **_):
        pathlib.Path(words[-1]).write_text("")
        return unittest.mock.Mock(returncode=0)

    run = unittest.mock.Mock(side_effect=write_result)
    with contextlib.ExitStack() as patched:
        patched.enter_context(unittest.mock.patch.object(evaluate, "RESULTS", folder))
        patched.enter_context(unittest.mock.patch.object(evaluate.subprocess, "run", run))
        patched.enter_context(unittest.mock.patch.object(evaluate.manifest, "commit", lambda: "commit"))
        patched.enter_context(contextlib.redirect_stdout(io.StringIO()))
        evaluate.measure(argparse.Namespace(**options))
    for call in run.call_args_list:
        words, home = call.args[0], call.kwargs["cwd"]
        simulate = [str(TOP / "bench" / "simulate"), "-b", str(folder.resolve())]
        if words[:3] != simulate or "text:text" not in words or home != text.resolve().parent:
            return f"{words} in {home}"
    recorded = {file.name for file in folder.glob("*.json")} == set(evaluate.manifest.entries(folder))
    return run.call_count if recorded else "without a manifest"


def measuring(evaluate):
    """Sentences on faults of --measure."""
    names = [name for name, _ in evaluate.measurements(pathlib.Path("text"))]
    if len(names) != len(set(names)):
        yield "bench/evaluate --measure would measure a result twice"
    batches = len(rows.WORDS) * len(rows.WIDTHS)
    with tempfile.TemporaryDirectory() as folder:
        for again, expected in ((False, batches), (False, 0), (True, batches)):
            found = runs_of_text(evaluate, pathlib.Path(folder), again)
            if found != expected:
                yield f"bench/evaluate --only 'rows-text-*' runs {found}, not {expected} simulations"


def main():
    failed, n, evaluate, text = 0, 0, load_evaluate(), ""
    for fault in itertools.chain(measuring(evaluate), baselines.faults_of_manifest(evaluate)):
        print(fault)
        failed = 1
    for file, made in evaluate.pages():
        page = file.read_text()
        text += page
        if page != made:
            print(
                f"{file.relative_to(TOP)} is not what bench/evaluate makes of its template and bench/results"
            )
            failed = 1
    for file in ("doc/performance.md", "doc/gpu.md", "README.md"):
        text += (TOP / file).read_text()
    words = " ".join(text.split())
    for part in (
        with_peers,
        on_ranks,
        by_steps,
        of_studies,
        computing,
        emulated,
        of_emulated_rows,
        of_rows,
        of_ranks,
        of_columns,
        *assumptions.PARTS,
        *baselines.PARTS,
        *collectives.PARTS,
        *devices.PARTS,
        *node.PARTS,
        *claims.PARTS,
    ):
        for sentence in part():
            n += 1
            if sentence not in words:
                print(f"the evaluation does not say, as bench/results would have it: {sentence}")
                failed = 1
    print(f"{n} sentences looked for")
    return failed


if __name__ == "__main__":
    sys.exit(main())
