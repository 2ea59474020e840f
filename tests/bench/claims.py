# SPDX-License-Identifier: BSD-3-Clause
"""Sentences on the paper's claims, on bounds of peers, on the crossover map and on short calls, for
tests/bench/evaluation.py."""

import itertools
import math

from evaluation import broadcasts, case_study, compute, crossover, emulation, rows, sensitivity, short
from evaluation import topology, training
from evaluation.figures import MODELS, dense_of, floor_of, rows_of, times_of, values_of, variant_of
from evaluation.rows import found_in
from sentences import percent, real, row_of, span, time_of

FULL = [case for case in rows.CASES if case.batch == "full"]


def of_bounds_of_peers():
    """Peers with computing, as measured and with their work hidden."""
    cells = list(itertools.product(compute.SIZES, compute.RATES, compute.THREADS))
    names = ["threads-16-{}-{}-{}".format(*cell) for cell in cells]
    ratios = {
        scheme: [time_of(name, scheme) / time_of(name) for name in names]
        for scheme in ("split_allgather", "recursive_doubling")
    }
    yield f"split_allgather takes {span(ratios['split_allgather'])} times as long as `balanced`"
    yield f"recursive doubling {span(ratios['recursive_doubling'])} times"
    slower = sum(a > b for a, b in zip(*ratios.values()))
    yield f"split_allgather is slower than recursive doubling in {slower} of {len(cells)} calls"
    bounds = {}
    for cell in cells:
        ours = time_of("threads-16-{}-{}-{}".format(*cell))
        bounds |= {(cell, scheme): bound / ours for scheme, bound in compute.bounds_of(*cell).items()}

    def cut(rate, threads, scheme=None):
        """The bounds of a scheme, or of all peers, in four cells."""
        return [
            bound
            for (cell, found), bound in bounds.items()
            if cell[1:] == (rate, threads) and found == (scheme or found) and (scheme or found != "balanced")
        ]

    work = span(cut(100, 1, "oktopk"))
    yield f"it would take {work} times as long, where `balanced` would take {span(cut(100, 1, 'balanced'))}"
    yield f"oktopk would take {work} times as long as `balanced` on one thread at 100 Gb/s"
    measured = [
        row["median_s"] / time_of(f"threads-16-{m}-100-1")
        for m in compute.SIZES
        for row in [compute.all_of(m, 100, 1)["oktopk"]]
    ]
    yield f"It takes {span(measured)} times as long as `balanced`. With all"
    near = [real(min(cut(100, 1, s))) for s in ("split_allgather", "ring")]
    yield f"The next bounds there are {near[0]} for split_allgather and {near[1]} for `ring`"
    assert sorted(cut(100, 1))[:5] == sorted(cut(100, 1, "oktopk") + [min(cut(100, 1, "split_allgather"))])
    table = [x for rate, threads in ((25, 1), (25, 16), (100, 16)) for x in cut(rate, threads)]
    yield f"In the other cells of the table the least bound is {real(min(table))}"
    others = {
        key: x
        for key, x in bounds.items()
        if key[1] != "balanced"
        and key[1] != "oktopk"
        and (key[0][1] not in compute.PEER_RATES or key[0][2] not in compute.PEER_THREADS)
    }
    least = min(others, key=others.get)
    assert least == (("lstm", 400, 4), "split_allgather"), least
    yield f"the least bound of the two schemes measured is {real(others[least])}: split_allgather with lstm"
    assert min(x for (_, s), x in bounds.items() if s not in ("balanced", "oktopk")) == others[least]
    yield f"Other peers would take {real(others[least])} times and more"


def of_index_hash():
    """A partition by a hash of each index beside that of the library, on one thread."""
    found = {(r["method"], r["threads"]): r["element_ns"] for r in rows_of("study-index-hash")}
    ours, theirs = found["hash", 1], found["index_hash", 1]
    yield f"takes one thread {real(theirs / ours, 1)} times as long by a hash of each index"
    yield f"by a hash of each index, {real(theirs, 1)} ns an element"


def of_crossover():
    found = crossover.cells()
    below = [cell for cell in found.values() if cell.gain < 1]
    wrong = {key: cell for key, cell in found.items() if cell.wrong()}
    dense = [1 / cell.gain for cell in found.values() if cell.dense_above_bound()]
    yield f"In {len(below)} of {len(found)} cells the bound is below the predicted time of `auto`"
    yield f"In {len(wrong)} of them `auto` runs a sparse scheme"
    worst = min(wrong, key=lambda key: wrong[key].gain)
    ranks, threads, rate, density = worst
    assert threads == 1
    yield f"has a gain of {real(wrong[worst].gain)}, on {ranks} ranks at {rate} Gb/s, one thread, with"
    yield f"with {100 * density:g} % present. In {len(dense)} it runs `MPI_Allreduce`"
    yield f"which it expects to take {span(dense)} times the bound"
    yield f"which is {span([cell.dense for cell in found.values()])} times the bound"
    keys = (64, 1, 100, 0.03), (128, 1, 100, 0.01), (256, 1, 50, 0.01), (1024, 1, 25, 0.01)
    gains = [real(found[key].gain) for key in keys]
    after = f"128 that have 1 % ({gains[1]}). At 50 Gb/s it"
    yield f"3 % ({gains[0]}) and {after} is for 256 ranks that have 1 % ({gains[2]})"
    yield f"3 % (the sparse call is {gains[0]} times as fast as dense) and {after} expects that for 256 ranks"
    yield f"ranks that have 1 % ({gains[2]}), and at 25 Gb/s for 1024 ({gains[3]})"
    more = [real(found[key].gain) for key in ((512, 4, 100, 0.01), (1024, 16, 100, 0.01))]
    yield f"at 100 Gb/s for 512 ranks that have 1 % ({more[0]}), on 16 threads for 1024 ({more[1]})"
    assert max(map(float, gains + more)) < 1
    dense, denser = (real(found[128, 1, 100, density].gain) for density in (0.03, 0.1))
    yield f"There are 128 ranks that have 3 and 10 % at 100 Gb/s, with gains of {dense} and {denser}"
    nmt = rows_of("gamma-nmt-128")[0]["gamma"]
    yield f"On 128 ranks that is {128**0.7:.1f} times, where nmt has {nmt:.1f}"
    work = [
        row_of(f"threads-16-{m}-{r}-1")["charged_s"] / row_of(f"threads-16-{m}-{r}-16")["charged_s"]
        for m, r in itertools.product(compute.SIZES, compute.RATES)
    ]
    yield f"threads make the charged work {span(work)} times shorter"


def of_headline():
    """The first sentence on the main page's figures."""
    near = {m: row_of(f"threads-16-{m}-25-1") for m in compute.SIZES}
    over = {m: row["median_s"] / floor_of(row) for m, row in near.items()}
    others = [x for m, x in over.items() if m != "lstm"]
    yield f"`balanced` takes {span(others)} times the floor, with lstm {real(over['lstm'])} times"
    small = []
    for case, ranks in itertools.product(rows.CASES, rows.RANKS):
        found = found_in(case.name(ranks))
        if "recursive_doubling" in found:
            small.append(found["recursive_doubling"]["median_s"] / found["balanced"]["median_s"])
    yield f"it takes at least {real(min(small), 3)} times as long on 16 to 128 ranks"


def of_communication():
    """Rows of the first table of claims."""
    gains = {way: topology.gains_of(topology.row_of("lstm", way))[0] for way in ("paper", "chosen")}
    in_rows = topology.gains_of(topology.row_of("lstm", "rows", "balanced", "auto"))
    text = f"{gains['paper']:.2f} with the paper's formats, {gains['chosen']:.2f} with ours"
    yield f"cluster: {text}, {in_rows[0]:.2f} with rows"
    yield f"and rows of 512 {in_rows[0]:.2f} and {in_rows[1]:.2f}"
    share = percent(gains["paper"] / topology.REPORTED["lstm"])
    yield f"At {share} % of it, the paper's formats would make {topology.REPORTED['lstm']}"
    yield f"an allreduce at {share} % of it would explain {topology.REPORTED['lstm']} by messages alone"
    models = [*topology.EMBEDDINGS, "llama"]
    paper = {m: topology.row_of(m, "paper")["median_s"] for m in models}
    coo = [topology.row_of(m, "coo", "recursive_doubling")["median_s"] / paper[m] for m in models]
    both = [
        topology.row_of(m, "chosen", "recursive_doubling")["median_s"]
        / topology.row_of(m, "chosen")["median_s"]
        for m in models
    ]
    yield f"coordinates against the paper's formats: {span(coo)}; with our formats on both sides {span(both)}"
    worse = {
        s: [topology.gains_of(topology.row_of(m, "coo", s))[0] for m in models]
        for s in ("sparse_ps", "allgather")
    }
    yield f"Sparse PS makes {span(worse['sparse_ps'])} in all four, and AGsparse {span(worse['allgather'])}"
    yield f"coordinates: Sparse PS {span(worse['sparse_ps'])}, AGsparse {span(worse['allgather'])}"
    slower = [times_of(f"ranks-{n}-lstm" if n > 16 else "speedup-lstm") for n in (16, 64, 128)]
    ahead = [real(times["recursive_doubling"] / times["balanced"]) for times in slower]
    yield f"lstm on 16, 64 and 128 ranks: {ahead[0]}, {ahead[1]} and {ahead[2]} times, formats chosen"
    auto = [
        topology.row_of(m, "chosen", "auto")["median_s"] / topology.row_of(m, "chosen")["median_s"]
        for m in models
    ]
    yield "`auto` takes as long as `balanced` in all four" if max(auto) < 1.0005 else f"auto: {auto}"


def of_omni():
    """OmniReduce in rows, contiguous and cyclic."""
    found = {
        m: [topology.row_of(m, "rows", "omni", p)["median_s"] for p in ("range", "auto")]
        for m in topology.EMBEDDINGS
    }
    ours = {m: topology.row_of(m, "rows", "balanced", "auto")["median_s"] for m in found}
    cyclic = {m: times[1] / ours[m] for m, times in found.items()}
    wide = [cyclic[m] for m in ("lstm", "nmt")]
    yield f"It is {span(wide)} times as fast as cyclic `omni` with rows of 512"
    yield f"with rows of 512, and {real(cyclic['deepfm'])} times with rows of 16"
    ratios = {}
    for case in rows.CASES:
        calls = found_in(case.name(16))
        ratio = calls["omni, contiguous"]["median_s"] / calls["balanced"]["median_s"]
        ratios.setdefault((case.spread, rows.TABLES[case.model].row == 512), []).append(ratio)
    skewed = ratios["skewed", True] + ratios["skewed", False]
    yield f"skewed rows {span(skewed)}, uniform rows of 512 {span(ratios['uniform', True])}"
    coo = {m: topology.gains_of(topology.row_of(m, "coo", "recursive_doubling"))[0] for m in found}
    blocks = {m: topology.gains_of(topology.row_of(m, "rows", "omni", "range"))[0] for m in found}
    words = [f"{real(coo[m])} and {real(blocks[m])} ({m})" for m in found]
    yield ", ".join(words)
    text = [real(coo[m]) for m in found]
    yield f"recursive doubling in coordinates makes {text[0]}, {text[1]} and {text[2]}"
    near = found_in("rows-nmt-skewed-full-128")
    near = near["omni"]
    yield f"cyclic `omni` is {real(dense_of(near) / near['median_s'])} times as fast as dense on 128"
    gain = {n: dense_of(row) / row["median_s"] for n in (16, 64) for row in [omni_of(n)]}
    yield f"contiguous owners of rows {gain[16]:.2f} and {gain[64]:.2f} times as fast as dense on 16 and 64"


def omni_of(ranks):
    if ranks == 16:
        return found_in(rows.OMNI_CASE.name(16))["omni, contiguous"]
    return found_in(f"rows-omni-{ranks}")["omni, contiguous"]


def of_schemes():
    gains = []
    for ranks in (16, 64):
        ours = found_in(rows.OMNI_CASE.name(ranks))["balanced"]
        gains.append(real(omni_of(ranks)["median_s"] / ours["median_s"]))
    yield f"Contiguous owners, nmt: {gains[0]} on 16 and {gains[1]} on 64"
    dense = dense_of(row_of("ranks-128-nmt"))
    over = {s: real(time / dense) for s, time in times_of("ranks-128-nmt").items()}
    words = f"recursive doubling {over['recursive_doubling']}, split_allgather {over['split_allgather']}"
    yield f"{words}, split_dense {over['split_dense']}"
    words = f"doubling takes {over['recursive_doubling']} times as long as dense, split_allgather"
    yield f"{words} {over['split_allgather']} and `split_dense` {over['split_dense']} times"
    yield f"AGsparse sends as much as dense on {1 / case_study.density_of(1):.1f} ranks"
    by_bytes = [real(case_study.over_dense(n)[2]) for n in (32, 64)]
    linear = [real(case_study.over_dense(n)[2]) for n in (8, 16, 32, 64, 128)]
    yield f"by bytes, NMT in coordinates: {', '.join(linear[:-1])} and {linear[-1]} of dense on 8, 16, 32, 64"
    equal = 1 / case_study.density_of(1)
    yield f"by bytes {by_bytes[0]} on 32 ranks, {by_bytes[1]} on 64, equal on {equal:.1f}"
    indices = [row_of(f"scaling-coo-{n}") for n in (2, 4, 8, 16, 32)]
    yield f"coordinates take {span([r['median_s'] / values_of(r) for r in indices])} times the values alone"
    batch = times_of("batch1coo")
    ours, gathered = [f"{1e3 * batch[s]:.4f}" for s in ("recursive_doubling", "allgather")]
    yield f"AGsparse {gathered} ms, recursive doubling {ours}"
    yield f"allgather here: {ours} and {gathered} ms"
    behind = real(100 * (batch["recursive_doubling"] / batch["allgather"] - 1), 1)
    yield f"In coordinates it is {behind} % behind allgather here"
    gaps = {"balanced": [], "allgather": []}
    for times in (times_of(f"batch1coo-{n}") for n in (16, 32, 64)):
        for scheme, found in gaps.items():
            found.append(times[scheme] / times["recursive_doubling"] - 1)
    ours, gathered = ["{}, {} and {} %".format(*map(percent, found)) for found in gaps.values()]
    eight = percent(batch["balanced"] / batch["recursive_doubling"] - 1)
    grows = gaps["balanced"][0] <= gaps["balanced"][1] <= gaps["balanced"][2]
    yield f"differs from 32 ranks on | {eight} % on 8 ranks, then {ours}" if grows else "the gap shrinks"
    every = [batch["balanced"] / batch["recursive_doubling"] - 1, *gaps["balanced"]]
    words = span([1 / (1 + gap) for gap in every])
    yield f"in coordinates recursive doubling takes {words} times as long on 8 to 64 ranks"
    yield f"{gathered} faster on 16, 32 and 64 ranks"
    yield f"it is {gathered} ahead of allgather, and {ours} ahead of `balanced`"


def of_overlap():
    """An overlap of .05 on 16 ranks: sets of a rank that are sent, of independent draws and a shared set."""
    draws, shared = (lambda n: (1 - 0.95**n) / 0.05), (lambda n: 0.05 + 0.95 * n)
    sent = {}
    for name, gamma in (("draws", draws), ("shared", shared)):
        both = sum(gamma(2**i) for i in range(4)), 15 / 16 * (1 + gamma(16))
        sent[name] = [real(x, 1) for x in both]
    yield "recursive doubling sends {} sets of a rank and balanced parallelism {}".format(*sent["draws"])
    yield "these are {} and {}".format(*sent["shared"])
    yield "of independent draws, {1} against {0} sets".format(*sent["draws"])
    yield "of ranks that share one set, {1} against {0}".format(*sent["shared"])
    yield f"by arithmetic: {real(math.sqrt(128 * math.log(128) / (1e7 * 0.5)), 3)}"


def of_formats():
    size = {(row["density"], row["wire"]): row["size"] for row in rows_of("study-formats")}
    few = [real(size[0.001, wire], 3) for wire in ("block", "coo")]
    yield f"Blocks of 256 values take {few[0]} of dense at .1 %, where coordinates take {few[1]}"
    yield f"at .1 %: {few[0]} against {few[1]} of dense"
    yield f"`bitmap` here is of a part, {real(size[0.7, 'bitmap'])} of dense at 70 %"
    yield f"Our bitmap is of a part, {real(size[0.7, 'bitmap'])} at 70 %"
    yield f"and 1 at 31/32; {real(size[0.95, 'hash_bitmap'])} of dense at 95 %"
    lost = {r["memory"]: real(100 * r["loss"], 1) for r in rows_of("study-hash") if r["method"] == "strawman"}
    yield f"loses {lost[2.5]} % of the elements with 2.5 cells an element, and {lost[10]} % with 10"
    whole = {r["loss"] for r in rows_of("study-hash") if r["method"] == "paper"}
    yield f"{max(whole):g} of 40 000 elements with 1 to 4 times the memory and 1 to 4 hashes"


def of_imbalance():
    found = {}
    for m, n in itertools.product(MODELS, (16, 64, 128)):
        file = f"speedup-{m}" if n == 16 else f"ranks-{n}-{m}"
        found.setdefault(n, []).extend(row_of(file)["push_imbalance"] for _ in rows_of(file)[:1])
    words = f"{span(found[16])} times the mean with these six here, on 16 ranks. On 64 ranks it has"
    words += f" {span(found[64])} times"
    yield f"{words}, and on 128 {span(found[128])} times"
    yield f"push {span(found[16])} with the workloads; {span(found[128])} on 128 ranks"
    study = {
        name: [
            r["push_mean"]
            for r in rows_of("study-balance")
            if r["partition"] == name and (r["chosen"] or name != "hash")
        ]
        for name in ("hash", "index_hash")
    }
    yield f"256 000 elements: hash {span(study['hash'])}, the paper's own hash {span(study['index_hash'])}"


def of_steps():
    piped = row_of(compute.name_of("lstm", compute.STEPS[6], True))
    time, work = piped["median_s"] * 1e3, piped["charged_s"] * 1e3
    yield f"segments {time:.0f} are needed, of which {work:.0f} are work"
    falls = [
        percent(
            1
            - time_of(f"steps-{m}-hash-coo+hash_bitmap-computing") / time_of(f"steps-{m}-hash-coo-computing")
        )
        for m in ("lstm", "llama")
    ]
    yield f"The time of a call falls by {falls[0]} % and {falls[1]} %"
    yield f"its time falls by {falls[0]} and {falls[1]} %"


def of_dense_rows():
    gains = []
    for case in FULL:
        row = found_in(case.name(16))["balanced"]
        gains.append(real(dense_of(row) / row["median_s"], 1))
    words = "times as long as `balanced` for skewed and uniform full batches of lstm"
    yield f"takes {gains[0]} and {gains[1]} {words}"
    yield f"{gains[2]} and {gains[3]} times for nmt, and {gains[4]} and {gains[5]} times for deepfm"


def of_the_model_of_rows():
    """What the selector expects of rows on up to 48 ranks, with columns chosen."""
    files = [rows.scaling_name(n) for n in rows.SCALING if n < 64]
    files += [case.name(16, *more) for case in rows.CASES for more in ((), ("computing",))]
    files += [f"rows-text-{words}-{width}" for words in rows.WORDS for width in rows.WIDTHS]
    found = {
        (name, row["scheme"], row["columns"]): row["median_s"] / row["predicted_s"]
        for name in files
        for row in rows_of(name)
        if row["scheme"] in ("balanced", "auto") and row["partition_requested"] == "auto"
        if row["columns_requested"] == "auto" and row["ran"] == "balanced"
    }
    yield f"{len(found)} calls that ran `balanced` take {span(found.values())} times as long"
    fast = [found_in(f"rows-{model}-skewed-full-16-computing-100")["balanced"] for model in ("lstm", "nmt")]
    ratios = [row["median_s"] / row["predicted_s"] for row in fast]
    yield f"at 100 Gb/s with work charged take {span(ratios)} times as long"
    small = [found_in(f"rows-deepfm-{spread}-400-{n}") for spread in ("skewed", "uniform") for n in (64, 128)]
    ratios = [found["balanced"]["median_s"] / found["balanced"]["predicted_s"] for found in small]
    yield f"Small batches of rows of 16 on 64 and 128 ranks take {span(ratios)} times."
    whole = rows_of(rows.UNSCALED)
    times = {row["scheme"]: real(1e3 * row["median_s"], 1) for row in whole}
    yield (
        f"{times['balanced']} ms with `balanced`, {times['auto']} with `auto`, "
        f"{times['recursive_doubling']} with recursive doubling"
    )


def of_the_model_of_peers():
    """What the selector expects of the other schemes on 16 ranks."""
    contiguous = {"balanced", "split_allgather", "split_dense", "ring", "oktopk", "sparse_ps"}
    tables = [case.name(16) for case in rows.CASES]
    texts = [f"rows-text-{words}-{width}" for words in rows.WORDS for width in rows.WIDTHS]

    def ratios(names, parts):
        return {
            (name, variant_of(row)): row["median_s"] / row["predicted_s"]
            for name in names
            for row in rows_of(name)
            if row["scheme"] == row["ran"]
            if parts == (row["partition_requested"] == "range" or row["scheme"] in contiguous)
            if row["scheme"] != "balanced" or row["partition_requested"] == "range"
        }

    whole = ratios(tables + texts, False)
    yield f"other schemes {len(whole)} calls of 16 ranks take {span(whole.values())} times as long"
    yield f"contiguous parts take {span(ratios(tables, True).values())} times as long with the tables"
    yield f"and {span(ratios(texts, True).values())} times with texts"


def of_narrow_rows():
    """Rows of 16 on more ranks."""
    narrow = [case for case in rows.CASES if rows.TABLES[case.model].row == 16]
    near = {}
    for case, ranks in itertools.product(narrow, rows.RANKS):
        row = found_in(case.name(ranks))["balanced"]
        if case.batch == "full":
            near.setdefault(ranks, []).append(row["median_s"] / floor_of(row))
        elif ranks > 16:
            near.setdefault(f"small on {ranks}", []).append(row["median_s"] / floor_of(row))
    yield f"ranks, {span(near[64])} on 64 and {span(near[128])} on 128"
    yield f"on 64 ranks {span(near['small on 64'])} times, on 128 {span(near['small on 128'])} times"
    uniform = [found_in(case.name(16)) for case in narrow if case.spread == "uniform"]
    doubling = [r["recursive_doubling"]["median_s"] / r["balanced"]["median_s"] for r in uniform]
    yield f"and {span(doubling)} times with rows of 16"
    ran = found_in("rows-ranks-2")["auto"]
    same = ran["median_s"] == found_in("rows-ranks-2")["recursive_doubling"]["median_s"]
    yield f"`auto` takes `{ran['ran']}` there, which takes as long" if same else f"2 ranks: {ran['ran']}"


def of_rows_computing():
    """Peers of rows with computing, as measured and with their work hidden."""
    omni, others, hidden, ran, regret = {}, [], [], set(), {}
    for case, rate in itertools.product(FULL, rows.CHARGED_RATES):
        found = found_in(case.name(16, "computing", str(rate)))
        if found:
            auto, ours = found.pop("auto"), found.pop("balanced")["median_s"]
            bounds = rows.charged_bounds(case, rate)
            ratios = {s: (row["median_s"] / ours, bounds[s] / ours) for s, row in found.items()}
            regret[case, rate] = auto["median_s"] / min(row["median_s"] for row in found.values())
            ran.add(auto["ran"])
            omni[case, rate] = ratios.pop("omni")
            others += [time for time, _ in ratios.values()]
            hidden += [bound for _, bound in ratios.values()]
    yield f"`auto` runs `{', '.join(sorted(ran))}` in all"
    slow, fast = ([time for (_, rate), (time, _) in omni.items() if rate == at] for at in (25, 100))
    bounds = [bound for _, bound in omni.values()]
    yield f"Cyclic `omni` takes {span(slow)} times as long at 25 Gb/s, and {span(fast)} times at 100"
    yield f"With its work hidden it would take {span(bounds)} times as long"
    yield f"which is the fastest: {span(regret.values())} times the time of the fastest peer"
    yield f"All others take {real(min(others))} times and more, and would take {real(min(hidden))} and more"


def of_emulation():
    def beside(names, clusters):
        found = [
            emulation.runs_of(m, c)["balanced"][0] | {"there": time_of(f"like-{m}-{c}")}
            for m in names
            for c in clusters
        ]
        return [[row[key] / row["there"] for row in found] for key in ("median_s", "skeleton_median_s")]

    levels = [span(values) for values in beside(emulation.NAMES, ["4x4"])]
    texts = [span(values) for values in beside(emulation.TEXTS, ["16", "8"])]
    yield f"With 4 ranks on each of 4 hosts these are {levels[0]} and {levels[1]} times"
    yield f"With rows of a text they are {texts[0]} and {texts[1]} times"
    row = emulation.runs_of("lstm", "4x4")["two_level"][0]
    foreseen, time = row["predicted_s"] * 1e3, row["median_s"] * 1e3
    yield f"For lstm the model foresaw {foreseen:.0f} ms, and it took {time:.0f}"
    most = {
        (m, c): max(r["iterations"] for r in rows_of(f"emulated-{m}-{c}"))
        for m in emulation.NAMES
        for c in emulation.CLUSTERS
    }
    five = [cell for cell, n in most.items() if n != 3]
    files = [f"emulated-{m}-{c}" for m in emulation.TEXTS for c in ("16", "8")]
    of_rows = {row["iterations"] for name in files for row in rows_of(name)}
    known = five == [("lstm", "16")] and of_rows == {11, 55}
    words = "medians of three calls, and of five for lstm on 16 hosts. With a text they are of 11, and of 55"
    yield words if known else f"calls: {most}, {of_rows}"


def of_training():
    gains = {}
    for case in training.cases():
        ways = training.ways_of(case)
        gains[case] = ways["dense"]["median_s"] / ways["auto"]["median_s"]
    slow, fast = gains["dlrm", "8", "50"], gains["dlrm", "8", "200"]
    yield f"but for dlrm on 8 hosts: {slow:.2f} times at 50 Mb/s and {fast:.2f} at 200"
    apart = max(
        abs(ours - theirs)
        for case in training.cases()
        for row in training.ways_of(case).values()
        for ours, theirs in zip(row["losses"], training.ways_of(case)["dense"]["losses"])
    )
    yield f"differ by 1e-7 of their value at most, which is {apart * 1e7:.1f}e-7"


def of_broadcasts():
    once = broadcasts.WEIGHTS * broadcasts.DENSITY * 6 / broadcasts.RATE
    gains = [once / broadcasts.times_of(n)["delta"] for n in broadcasts.RANKS]
    words = f"It is {gains[0]:.1f} and {gains[1]:.1f} times as fast as that"
    yield f"which take {once * 1e3:.2f} ms over a link. {words}"


def of_unequal():
    most = {m: sensitivity.most_of(m) for m in sensitivity.SCALES}
    yield f"it gets {most['lstm']:.1f} (lstm) and {most['llama']:.1f} times (llama) as many"
    longer = {m: time_of(f"sensitivity-{m}-unequal") / time_of(f"sensitivity-{m}-latency-10") for m in most}
    yield f"`balanced` takes {span([longer[m] for m in sensitivity.SCALES])} times as long"


def of_short_calls():
    cells = {(n, *t): short.over_best(calls) for n in short.RANKS for t, calls in short.calls_of(n).items()}
    *_, second, worst = sorted(cells, key=cells.get)
    assert second[0] == worst[0] == 4
    words = [f"{100 * density:g} % of {short.COUNTS[count]}" for _, count, density in (worst, second)]
    yield f"`auto` takes at most {real(cells[worst])} times as long as the fastest. That is on 4 ranks"
    yield f"on 4 ranks with {words[0]} elements or {words[1]}"


PARTS = [
    of_bounds_of_peers,
    of_index_hash,
    of_crossover,
    of_headline,
    of_communication,
    of_omni,
    of_schemes,
    of_overlap,
    of_formats,
    of_imbalance,
    of_steps,
    of_dense_rows,
    of_the_model_of_rows,
    of_the_model_of_peers,
    of_narrow_rows,
    of_rows_computing,
    of_emulation,
    of_training,
    of_broadcasts,
    of_unequal,
    of_short_calls,
]
