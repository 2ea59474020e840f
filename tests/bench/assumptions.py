# SPDX-License-Identifier: BSD-3-Clause
"""Sentences of the pages on the paper's cluster and on sensitivity, for tests/bench/evaluation.py."""

import itertools

from evaluation import compute, crossover, rows, seeds, sensitivity, topology
from evaluation.figures import dense_of, rate_of, rows_of
from sentences import percent, real, row_of, span, time_of


def of_topology():
    paper = {m: topology.row_of(m, "paper") for m in [*topology.EMBEDDINGS, "llama"]}
    chosen = {m: topology.row_of(m, "chosen") for m in paper}
    gpu = {m: rows_of(f"speedup-{m}")[0]["density"] for m in topology.EMBEDDINGS}
    machine = [paper[m]["density"] / gpu[m] for m in gpu]
    result = [paper[m]["nnz_out"] / paper[m]["count"] / gpu[m] for m in gpu]
    yield f"The union of 8 GPUs is {span(machine, 1)} times as dense as a GPU's tensor"
    yield f"the result of all machines {span(result, 0)} times"
    out = paper["deepfm"]["nnz_out"] / paper["deepfm"]["count"]
    yield f"a result that is {percent(out)} % dense (deepfm)"
    (alone, nvlink, pcie), (ours, ours_nvlink, _) = [topology.gains_of(r["deepfm"]) for r in (paper, chosen)]
    yield f"reports {topology.REPORTED['deepfm']:.2f}. Its formats make {alone:.2f} by messages alone"
    yield f"and {nvlink:.2f} with NVLink, the chosen ones {ours:.2f} and {ours_nvlink:.2f}"
    headline = row_of("speedup-deepfm")
    yield f"On 16 × 1 the same workload makes {dense_of(headline) / headline['median_s']:.2f}"
    lstm, ours = [topology.gains_of(r["lstm"]) for r in (paper, chosen)]
    yield f"The paper reports {topology.REPORTED['lstm']}. Its formats make {lstm[0]:.2f} by messages alone"
    yield f"and {lstm[1]:.2f} with NVLink. The chosen ones make {ours[0]:.2f} and {ours[1]:.2f}"
    llm = [topology.gains_of(r["llama"])[0] for r in (paper, chosen)]
    yield f"Its formats make {llm[0]:.2f} and the chosen ones {llm[1]:.2f}"
    more = [percent(llm[0] / topology.REPORTED[m] - 1) for m in ("gemma", "opt")]
    yield f"The difference is {more[0]} to {more[1]} % for the paper's formats"
    yield f"PCIe would make less of it: {lstm[2]:.2f} and {pcie:.2f} with lstm and deepfm"
    doubling = {m: topology.row_of(m, "coo", "recursive_doubling") for m in paper}
    coo = [doubling[m]["median_s"] / paper[m]["median_s"] for m in paper]
    yield f"recursive doubling takes {span(coo)} times as long as `balanced` with the paper's formats"
    both = [
        topology.row_of(m, "chosen", "recursive_doubling")["median_s"] / chosen[m]["median_s"] for m in paper
    ]
    yield f"With the chosen formats on both sides it is {span(both)} times"
    slower = [real(topology.gains_of(doubling[m])[0]) for m in ("deepfm", "nmt")]
    yield f"slower than dense with deepfm and nmt ({' and '.join(slower)})"
    blocks = [topology.gains_of(topology.row_of(m, "chosen", "omni"))[0] for m in paper]
    yield "it is never faster than dense here" if max(blocks) < 1 else f"omni: {blocks}"
    rows = {
        s: [topology.row_of(m, "rows", s, p) for m in gpu]
        for s, p in (("omni", "range"), ("balanced", "auto"))
    }
    gains = [real(topology.gains_of(row)[0]) for row in rows["omni"]]
    yield f"it is {gains[0]}, {gains[1]} and {gains[2]} times as fast as dense with lstm, deepfm and nmt"
    ahead = [omni["median_s"] / ours["median_s"] for omni, ours in zip(rows["omni"], rows["balanced"])]
    yield f"`balanced` in rows is {span(ahead)} times as fast as that"
    formats = [paper[m]["median_s"] / chosen[m]["median_s"] - 1 for m in topology.EMBEDDINGS]
    yield f"The chosen formats gain {percent(min(formats))} to {percent(max(formats))} % on the paper's"
    for model in ("deepfm", "lstm"):
        needed = [
            100 * topology.needed_of(paper[model], topology.REPORTED[model], rate)
            for rate in (None, topology.WITHIN["NVLink"])
        ]
        drawn = 100 * paper[model]["nnz_out"] / paper[model]["count"]
        verb = "dense, instead of" if model == "deepfm" else "instead of"
        yield f"{span(needed, 1)} % {verb} {drawn:.1f} %"


def of_claims():
    """The main page's summary of both pages."""
    gains = {
        m: [topology.gains_of(topology.row_of(m, way))[0] for way in ("paper", "chosen")]
        for m in ("lstm", "deepfm", "llama")
    }
    lstm, deepfm, llama = [[f"{gain:.2f}" for gain in gains[m]] for m in ("lstm", "deepfm", "llama")]
    yield f"| LSTM | 6.77 | {lstm[0]}, not reproduced | {lstm[1]} |"
    yield f"| DeepFM | 2.10 | {deepfm[0]}, reproduced | {deepfm[1]} |"
    yield f"cluster: {deepfm[0]} with the paper's formats, {deepfm[1]} with ours"
    yield f"| OPT and Gemma2 | 3.44 and 3.51 | {llama[0]}, exceeded | {llama[1]} |"
    yield f"{llama[0]} with the paper's formats and {llama[1]} with ours"
    row = topology.row_of("lstm", "paper")
    needed = [
        topology.needed_of(row, topology.REPORTED["lstm"], r) for r in (None, topology.WITHIN["NVLink"])
    ]
    yield f"needs a result that is {percent(min(needed))} to {percent(max(needed))} % dense"
    left = [over_ours("llama", case, "dense") for case in ("core", "latency-10")]
    yield f"with llama {left[0]:.1f} times are left of {left[1]:.1f}"


def file_of(workload, case):
    return f"sensitivity-{workload}-{case}"


def of_latency():
    def longer(workload):
        return [time_of(file_of(workload, f"latency-{us}")) for us in sensitivity.LATENCIES]

    times = {workload: longer(workload) for workload in [*sensitivity.SCALES, sensitivity.SMALL]}
    most = max(max(times[m]) / min(times[m]) - 1 for m in sensitivity.SCALES)
    both = [t * 1e3 for m in sensitivity.SCALES for t in times[m]]
    yield f"take at most {100 * most:.1f} % longer: they last {span(both, 0)} ms"
    small = times[sensitivity.SMALL]
    yield f"The call of `small` takes {small[0] * 1e6:.0f} us at 1 us and {small[-1] * 1e6:.0f} us at 50"
    slower = {}
    for us in sensitivity.LATENCIES:
        found = {row["scheme"]: row["median_s"] for row in rows_of(file_of("small", f"latency-{us}"))}
        auto = found.pop("auto")
        slower[us] = (auto / min(found.values()) - 1, min(found, key=found.get))
    first = {scheme for _, scheme in slower.values()}
    yield f"`{', '.join(sorted(first))}` is first at all latencies"
    late = max(late for late, _ in slower.values())
    yield "and `auto` takes it" if late < 0.005 else f"`auto` takes {percent(late)} % longer"


def over_ours(workload, case, scheme):
    return time_of(file_of(workload, case), scheme) / time_of(file_of(workload, case))


def over_base(case, scheme="balanced"):
    return [
        time_of(file_of(m, case), scheme) / time_of(file_of(m, "latency-10"), scheme)
        for m in sensitivity.SCALES
    ]


def of_networks():
    yield f"what racks alone cost: at most {real(100 * (max(over_base('racks')) - 1), 1)} %"
    yield f"A core of 4:1 makes `balanced` {span(over_base('core'), 1)} times slower"
    ring = max(abs(x - 1) for x in over_base("core", "dense"))
    yield "A dense ring is not hit at all" if ring < 0.005 else f"dense: {ring}"
    gains = [over_ours(m, case, "dense") for m in ("llama", "lstm") for case in ("latency-10", "core")]
    yield f"with llama the gain over dense falls from {gains[0]:.2f} to {gains[1]:.2f} times"
    yield f"With lstm it falls from {gains[2]:.0f} to {gains[3]:.1f} times"
    slow = over_base("slow") + over_base("slow", "dense")
    yield f"`balanced` and dense take {span(slow, 1)} times as long"
    ahead = [
        min(t for s, t in ((r["scheme"], r["median_s"]) for r in rows_of(file_of(m, case))) if s != "auto")
        == time_of(file_of(m, case))
        for m in sensitivity.SCALES
        for case in [*sensitivity.NETWORKS, *sensitivity.RANK_OPTIONS]
    ]
    yield "`balanced` stays first" if all(ahead) else f"first: {ahead}"


def of_ranks_apart():
    def longer(case):
        times = [time_of(file_of(m, case)) - time_of(file_of(m, "latency-10")) for m in sensitivity.SCALES]
        return span([1e3 * t for t in times], 1)

    yield f"A rank that comes 5 ms late makes the call {longer('late')} ms longer"
    yield f"Random delays of up to 5 ms cost {longer('jitter')} ms"
    behind = [real(over_ours(m, "unequal", "recursive_doubling")) for m in sensitivity.SCALES]
    yield f"Recursive doubling falls behind, {' and '.join(behind)} times as long"
    yield f"near with llama, {over_ours('llama', 'unequal', 'split_allgather'):.2f} times as long"
    ran = {row_of(file_of(m, c), "auto")["ran"] for m in sensitivity.SCALES for c in sensitivity.RANK_OPTIONS}
    yield f"`auto` stays with `{', '.join(sorted(ran))}`, the fastest, in all of these"


def of_drift():
    ratios = [
        time_of(file_of(m, "drift"), "oktopk") / time_of(file_of(m, "still"), "oktopk")
        for m in sensitivity.SCALES
    ]
    yield f"It takes {ratios[0]:.2f} (lstm) and {ratios[1]:.2f} (llama) times as long as without drift"
    same = [time_of(file_of(m, "drift")) / time_of(file_of(m, "still")) for m in sensitivity.SCALES]
    yield "`balanced` takes as long as before" if max(same) < 1.01 else f"balanced: {same}"


def of_seeds():
    widest = seeds.widest(f"seed-{m}" for m in seeds.SCALES)
    yield f"Intervals of times are within {real(100 * widest)} % of the means"
    for words, prefix in [
        ("on 2 to 32 ranks", tuple(f"{n} ranks, nmt" for n in seeds.SCALING)),
        ("on 64 ranks", "64 ranks"),
        ("with computing", "computing"),
        ("with rows in full batches", "rows"),
    ]:
        settings = [s for w, s, _ in seeds.elsewhere() if w.startswith(prefix) and "400" not in w]
        yield f"{real(100 * seeds.widest(settings))} % {words}"
    small = [s for w, s, _ in seeds.elsewhere() if "400" in w]
    yield f"{real(100 * seeds.widest(small))} % with rows in batches of 400"


def of_prices():
    """Where the model's prices mislead."""
    prices = {}
    for rate, threads, workload in itertools.product(compute.RATES, compute.THREADS, compute.SIZES):
        row = row_of(f"threads-16-{workload}-{rate}-{threads}")
        prices.setdefault((rate, threads), []).append(row["predicted_s"] / row["median_s"])
    high = span(prices[100, 1] + prices[400, 1])
    yield f"On one thread at 100 and 400 Gb/s they are {high} times"
    yield f"On 16 threads at 400 Gb/s they are {span(prices[400, 16])} times"
    yield f"On 4 and 16 threads at 100 Gb/s they are {span(prices[100, 4] + prices[100, 16])} times"
    levels = [row for m in ("lstm", "llama") for row in rows_of(f"levels-{m}-computing")]
    near = span([row["predicted_s"] / row["median_s"] for row in levels])
    yield f"prices at 25 Gb/s are {near} times the times"
    seconds = {
        (r["ranks"], r["threads"], r["gbps"], r["density"]): r["seconds"] for r in rows_of("crossover")
    }
    densities = sorted({key[3] for key in seconds})
    after = dict(zip(densities, densities[1:]))
    rises = [seconds[(*key[:3], after[key[3]])] / s for key, s in seconds.items() if key[3] in after]
    falls = [rise for rise in rises if rise < 0.98]
    yield f"In {len(falls)} of {len(rises)} pairs of neighbouring cells more elements are expected to take"
    yield f"2 % less time, down to {real(min(falls))} times"


def of_bounds_of_rows():
    """Peers of rows with their work hidden."""
    bounds = {}
    for case, rate in itertools.product(rows.CASES, rows.CHARGED_RATES):
        found = rows.charged_bounds(case, rate)
        for scheme in set(found) - {"auto", "balanced"}:
            bounds.setdefault(scheme, []).append(found[scheme] / found_ours(case, rate))
    omni, oktopk = (real(min(bounds.pop(scheme))) for scheme in ("omni", "oktopk"))
    least = real(min(map(min, bounds.values())))
    yield "With rows cyclic `omni` would take"
    yield f"{omni} times and more, oktopk {oktopk} and others {least}"


def of_work_alone():
    """oktopk where it was not run, and dense where the model has it ahead."""
    least = {}
    for threads, model in itertools.product(compute.PEER_THREADS, compute.SIZES):
        ours = row_of(f"threads-16-{model}-400-{threads}")
        runs = [compute.all_of(model, rate, threads)["oktopk"] for rate in compute.PEER_RATES]
        bound = min(compute.overlapped(run, rate_of(ours)) for run in runs)
        least.setdefault(threads, []).append(bound / ours["median_s"])
    yield f"it would take {span(least[1])} times as long on one thread, and {span(least[16])} times on 16"
    yield f"At 400 Gb/s the bounds of oktopk are {span(least[1])} on one thread and {span(least[16])} on 16"
    servers = [
        min(r["median_s"] for r in rows_of(f"ps-{m}")) / row_of(f"speedup-{m}")["median_s"]
        for m in ("lstm", "deepfm", "nmt", "llama", "opt", "gemma")
    ]
    yield f"Sparse PS with the best of three formats takes {span(servers, 1)} times as long on 16 ranks"
    found = crossover.cells()
    gains = [
        real(found[ranks, 1, rate, share].gain)
        for rate, share in ((100, 0.1), (25, 0.5))
        for ranks in (16, 2)
    ]
    yield f"one thread at 100 Gb/s loses at 10 % ({gains[0]} times as fast on 16 ranks, {gains[1]} on 2"
    yield f"and at 25 Gb/s at 50 % ({gains[2]} and {gains[3]})"


def found_ours(case, rate):
    return rows.found_in(case.name(16, "computing", str(rate)))["balanced"]["median_s"]


PARTS = [
    of_topology,
    of_claims,
    of_latency,
    of_networks,
    of_ranks_apart,
    of_drift,
    of_seeds,
    of_prices,
    of_bounds_of_rows,
    of_work_alone,
]
