# SPDX-License-Identifier: BSD-3-Clause
"""Sentences on formats and programs of others, and on training; and the manifest, for
tests/bench/evaluation.py."""

import json
import pathlib

from evaluation import case_study, manifest, oktopk, topology, training
from evaluation.figures import RESULTS, dense_of, rows_of, times_of
from sentences import percent, real, row_of, span, time_of

STEPPED = ["lstm", "llama"]
GAMMA_MODELS = ["lstm", "deepfm", "nmt", "bert", "llama"]
COO, BITMAP = "hash-coo", "hash-coo+hash_bitmap"
SCALING = [3, 4, 6, 8, 12, 24, 32]  # numbers of ranks on which all schemes ran


def of_formats():
    """Formats of others beside those of the library."""
    sizes = {}
    for row in rows_of("study-formats"):
        sizes.setdefault(row["density"], {})[row["wire"]] = row["bytes"]
    pici = [found["pici"] / found["hash_bitmap"] for found in sizes.values()]
    bloom = [found["bloom"] / found["elias_fano"] for found in sizes.values()]
    yield f"It takes {span(pici)} times the bytes of a hash bitmap"
    yield f"it takes {span(bloom)} times the bytes of Elias–Fano coding"
    first = {min(found, key=found.get) for found in sizes.values()}
    smallest = first & {"pici", "bloom"}
    yield f"smallest: {smallest}" if smallest else "Neither of the two is smallest at any density"


def of_oktopk():
    found = {workload: oktopk.row_of(workload) for workload in oktopk.WORKLOADS}
    push, pull = ([row[key] for row in found.values()] for key in ("push_imbalance", "pull_imbalance"))
    yield f"boundaries make the push equal, {span(push)} times the mean"
    yield f"The fullest part of it has {span(pull)} times the mean"
    bound = {m: oktopk.seconds_of(row, oktopk.COORDINATE) for m, row in found.items()}
    yield f"It is {span([bound[m] / row['median_s'] for m, row in found.items()])} times what `oktopk` takes"
    chosen = [oktopk.with_formats(row) / time_of(f"speedup-{m}") for m, row in found.items()]
    yield f"With the formats chosen the bound is {span(chosen)} times the time of `balanced`"
    ours = {m: time_of(f"steps-{m}-hash-coo") for m in ("lstm", "llama")}
    yield f"`balanced` takes {ours['lstm'] * 1e3:.1f} ms (lstm) and {ours['llama'] * 1e3:.1f} (llama)"
    yield f"and the bound is {bound['lstm'] * 1e3:.1f} and {bound['llama'] * 1e3:.1f} ms"


def of_claims():
    """Claims of the paper in the table of the main page."""
    ahead = []
    for model in topology.EMBEDDINGS:
        omni, ours = [
            topology.row_of(model, "rows", *how) for how in (("omni", "range"), ("balanced", "auto"))
        ]
        ahead.append(omni["median_s"] / ours["median_s"])
    yield f"cluster, contiguous owners of rows: {span(ahead)}; on 16 × 1 skewed rows"
    first = {}
    for ranks in SCALING:
        times = times_of(f"scaling-{ranks}")
        first[ranks] = min(set(times) - {"auto", "dense", "hybrid"}, key=times.get)
    many = {scheme for ranks, scheme in first.items() if ranks >= 6}
    if many == {"balanced"} and (first[3], first[4]) == ("allgather", "recursive_doubling"):
        yield "first from 6 ranks on, recursive doubling on 4; on 3 allgather is faster than both"
    else:
        yield f"first: {first}"
    calls = {step: {m: time_of(f"steps-{m}-{step}-computing") for m in STEPPED} for step in (COO, BITMAP)}
    gain = [percent(calls[COO][m] / calls[BITMAP][m] - 1) for m in STEPPED]
    yield f"| {gain[0]} % (lstm) and {gain[1]} % (llama) of a call's speed"
    costs = json.loads((RESULTS / "costs.json").read_text())["costs"]
    packed = {
        cost["work"]: cost["element_s"] * 1e9
        for cost in costs
        if cost["format"] == "packed" and cost.get("threads", 1) == 1
    }
    yield f"{packed['encode']:.1f} ns to write an element and {packed['decode']:.1f} to read it"


def of_case_study():
    """NMT on 128 ranks."""
    balanced, doubling, gathered = case_study.over_dense(128)
    yield f"the overlap is set so: {percent(1 - balanced)} % by bytes"
    yield f"On 128 ranks balanced parallelism sends {real(balanced)} times the bytes of dense"
    yield f"Recursive doubling sends {real(doubling)} times, AGsparse {real(gathered)} times"
    dense = dense_of(row_of("ranks-128-nmt"))
    over = {s: real(time / dense) for s, time in times_of("ranks-128-nmt").items()}
    words = f"`sparse_ps` in coordinates {over['sparse_ps']}"
    yield f"`omni` takes {over['omni']} times as long as dense, and {words} times"
    told = min(row["median_s"] for row in rows_of("ps-nmt-128")) / dense
    yield f"the best of three formats takes {real(told)} times"
    yield f"split_dense .84, Sparse PS {real(told)}"


def of_training():
    """Each claim of the page on training, for the cases that are stored."""
    found = [training.ways_of(case) for case in training.cases()]
    if not found:
        return
    gains = [ways["dense"]["median_s"] / ways["auto"]["median_s"] for ways in found]
    yield f"`auto` makes a step {span(gains, 1)} times as fast as dense"
    yield f"on 4 and 8 hosts of 50 to 1000 Mb/s: {span(gains, 1)} times"
    others = [
        min(row["median_s"] for way, row in ways.items() if way not in ("dense", "auto"))
        / ways["auto"]["median_s"]
        for ways in found
    ]
    yield f"The best other sparse way takes {span(others)} times as long as `auto`"
    less = [ways["dense"]["bytes_sent_max"] / ways["auto"]["bytes_sent_max"] for ways in found]
    yield f"A host of dense sends {span(less, 0)} times the bytes of `auto`"
    spread = [max(row["step_s"]) / min(row["step_s"]) for ways in found for row in ways.values()]
    yield f"Steps of one way differ by up to {max(spread):.1f} times"
    sent = {
        way: [ways[way]["bytes_sent_max"] / ways["auto"]["bytes_sent_max"] for ways in found]
        for way in ("recursive_doubling", "AGsparse")
    }
    yield f"Recursive doubling sends {span(sent['recursive_doubling'])} times the bytes of `auto`"
    yield f"and AGsparse {span(sent['AGsparse'])} times"
    apart = max(
        abs(ours - theirs) / theirs
        for ways in found
        for row in ways.values()
        for ours, theirs in zip(row["losses"], ways["dense"]["losses"])
    )
    yield "Losses of all ways differ by 1e-7 of their value" if apart < 1e-7 else f"by {percent(apart)} %"
    waits = [
        min(ways[way]["wait_median_s"] for way in ("AGsparse", "recursive_doubling"))
        / ways["auto"]["wait_median_s"]
        for ways in found
    ]
    shorter = [ratio for ratio in waits if ratio < 0.95]
    yield f"AGsparse takes {span(shorter)} times as long as `auto` in {len(shorter)} of {len(waits)} cases"
    steps = [ratio for ratio in others if ratio < 0.95]
    yield f"less than .95 times as long as `auto` in {len(steps)} of {len(others)} cases"


def of_sharding():
    """Sentences on shards of the optimizer's state."""
    setup = training.sharded_rows("setup")[0]
    plain, sharded = training.sharded_rows("summary")
    tables = 4 * setup["parameters_of_tables"]
    rest = plain["state_bytes"] - tables
    less, whole, rest = (number / 1e6 for number in (sharded["state_bytes"] - rest, tables, rest))
    yield f"The tables' state is half, {less:.2f} of {whole:.2f} MB"
    yield f"The other parameters' state, {rest:.2f} MB, stays whole"
    longer = real(sharded["step_ms"] / plain["step_ms"])
    yield f"A median step of the sharded model takes {longer} times as long"
    losses = {row["communication"]: [] for row in (plain, sharded)}
    for row in training.sharded_rows("step"):
        losses[row["communication"]].append(row["loss"])
    one, other = losses.values()
    yield "The losses of all steps are equal to the bit" if one == other else "Losses differ"


def of_densification():
    """The densification ratio on few and on many ranks."""
    few, many = ([rows_of(f"gamma-{model}-{n}")[0]["gamma"] for model in GAMMA_MODELS] for n in (16, 128))
    yield f"gamma(n) is below n: {span(few, 1)} on 16 ranks, {span(many, 1)} on 128"


def faults_of_manifest(evaluate):
    """Sentences on what is wrong with the manifest of bench/results."""
    found = manifest.entries()
    files = {file.name for file in RESULTS.glob("*.json")}
    for name in sorted(files ^ set(found)):
        yield f"bench/results: {name} is {'not in the manifest' if name in files else 'no file'}"
    for name, command in evaluate.measurements(pathlib.Path("text")):
        record = found.get(name + ".json")
        if record and record["command"] != manifest.words_of(command):
            yield f"bench/results/{name}.json is of another command: {record['command']}"
    for record in found.values():
        if not all(record[key] for key in ("command", "date", "commit")):
            yield f"the manifest lacks command, date or commit of {record['file']}"


PARTS = [of_formats, of_oktopk, of_claims, of_case_study, of_training, of_sharding, of_densification]
