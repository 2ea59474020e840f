# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the evaluation with modelled computing, and their measurements."""

import itertools
import json
import math

from evaluation import intervals
from evaluation.figures import (
    RESULTS,
    bars_of,
    dense_of,
    floor_of,
    new_axes,
    number,
    rate_of,
    rows_of,
    save,
    table,
    variant_of,
)

# Elements and density of the models, as in bench/lib/workload.c, and the scale of the tensors.
SIZES = {
    "lstm": (406e6, 0.0113, 64),
    "deepfm": (214e6, 0.0280, 64),
    "nmt": (112e6, 0.0247, 32),
    "llama": (2**25, 0.05, 16),
}
SEGMENT = 1 << 18  # bytes; the library's choice for the unscaled tensors
WHOLE = 1 << 30  # one segment
# Partition, format, bytes of a message, messages under way.
STEPS = [
    ("range", "coo", WHOLE, "auto", "contiguous ranges, coordinates"),
    ("hash", "coo", WHOLE, "auto", "hashed, coordinates"),
    ("hash", "packed", WHOLE, "auto", "hashed, packed"),
    ("hash", "coo/hash_bitmap", WHOLE, "auto", "hashed, the paper's hash bitmap in the pull"),
    ("hash", "auto", WHOLE, "auto", "the formats that are chosen"),
    ("hash", "auto", SEGMENT, 4, "pipelined, 4 messages under way"),
    ("hash", "auto", SEGMENT, "auto", "pipelined"),
]
LEVELS = ["balanced", "two_level"]
NODES, PER_NODE = 16, 4
RATES, THREADS = [10, 25, 100, 400], [1, 4, 16]
# The peers that the table of threads leaves out, on fewer rates and threads.
PEERS = "allgather,oktopk,sparse_ps,ring,split_dense".split(",")
PEER_RATES, PEER_THREADS = [25, 100], [1, 16]
# omni: cyclic, its default, and contiguous blocks. It moves nearly the whole vector, and shorter messages
# take more than ten minutes to simulate.
OMNI = ("auto,range", "auto", 16 * SEGMENT, "auto")


def grain_of(nnz, ranks):
    """The library's grain for the unscaled tensor; a scaled tensor would get more blocks an element."""
    most = 0.01 * nnz / (2 * ranks * math.log(ranks))
    return 2 ** min(8, max(0, math.floor(math.log2(most))))


def call(name, model, *schemes, ranks=NODES, computing=True, rate=25, step=("hash", "auto", SEGMENT, "auto")):
    """The name and command of one measurement."""
    partition, wire, segment, throttle = step[:4]
    count, density, scale = SIZES[model]
    scale = scale * ranks // NODES
    words = (
        f"env MPIX_SPARSE_SEGMENT={max(1, segment // scale)} MPIX_SPARSE_THROTTLE={throttle} bench/simulate"
    )
    words += f" -n {NODES} -k {ranks // NODES} -r {rate} -s {scale}"
    words += " --compute" if computing else ""
    words += " -p .1" if computing and ranks == NODES else ""  # scaled pieces of work are short
    words += f" -- --workload {model} -n 1 -w 1 --check 0 --alone -S {','.join(schemes)}"
    words += f" -W {wire} -P {partition}"
    if partition == "hash":
        words += f" -g {grain_of(count * density, ranks)}"
    return name, words.split()


def messages_alone(model, step):
    """Without computing, in one segment: grain and formats are chosen for the scaled tensor."""
    partition, wire = step[:2]
    words = f"bench/simulate -n {NODES} -r 25 -s {128 if model == 'lstm' else 16} -- --workload {model}"
    words += f" -n 1 -w 1 --check 0 --alone -S balanced -W {wire} -P {partition}"
    return name_of(model, step, False), words.split()


def levels(model, computing):
    """Several ranks a node. One segment, because many messages are slow to simulate."""
    name = f"levels-{model}" + "-computing" * computing
    return call(name, model, *LEVELS, ranks=NODES * PER_NODE, computing=computing, step=STEPS[4])


def name_of(model, step, computing):
    partition, wire, segment, throttle = step[:4]
    words = ["steps", model, partition, wire.replace("/", "+")]
    words += ["pipelined"] if segment == SEGMENT else []
    words += [str(throttle)] if throttle != "auto" else []
    return "-".join(words + ["computing"] * computing)


def with_threads(measurement, threads):
    name, words = measurement
    at = words.index("--")
    return name, words[:at] + ["--threads", str(threads)] + words[at:]


def on_threads(model, rate, threads):
    """The name and command of one cell of the table of threads."""
    schemes = "balanced,recursive_doubling,split_allgather,dense,auto".split(",")
    return with_threads(call(f"threads-16-{model}-{rate}-{threads}", model, *schemes, rate=rate), threads)


def peers_on_threads(model, rate, threads):
    """The names and commands of one cell of the table of peers with computing."""
    cell = f"16-{model}-{rate}-{threads}"
    yield with_threads(call(f"peers-{cell}", model, *PEERS, rate=rate), threads)
    yield with_threads(call(f"omni-{cell}", model, "omni", rate=rate, step=OMNI), threads)


def charged_measurements():
    for rate in RATES:
        for threads in THREADS:
            for model in SIZES:
                yield on_threads(model, rate, threads)
    for cell in itertools.product(SIZES, PEER_RATES, PEER_THREADS):
        yield from peers_on_threads(*cell)
    for model in ["lstm", "llama"]:
        for step in STEPS:
            yield call(name_of(model, step, True), model, "balanced", step=step)
    for model in ["lstm", "llama"]:
        yield levels(model, True)
    for model in ["lstm", "llama"]:
        for step in STEPS[:-2]:
            yield messages_alone(model, step)
        yield call(name_of(model, STEPS[-1], False), model, "balanced", computing=False, step=STEPS[-1])
        yield levels(model, False)


def sums_of(row):
    """Seconds of the sums in MPI_Allreduce: (n - 1) / n of the vector."""
    costs = json.loads((RESULTS / "costs.json").read_text())["costs"]
    cost = next(c["byte_s"] for c in costs if c["work"] == "sum")
    return (NODES - 1) / NODES * 4 * row["count"] * row["row"] * row["scale"] * cost


def best_dense(row, computing):
    """The best dense algorithm on one rank a node, whose sums overlap its messages. Sums of several ranks
    within a node would come on top."""
    return max(dense_of(row | {"ranks": NODES}), computing * sums_of(row))


def gain(name, scheme, computing):
    row = next((r for r in rows_of(name) if r["scheme"] == scheme), None)
    return best_dense(row, computing) / row["median_s"] if row else math.nan


def breakdown():
    """Part d."""
    columns = [(model, computing) for model in ["lstm", "llama"] for computing in [False, True]]
    series = {step[4]: [gain(name_of(m, step, c), "balanced", c) for m, c in columns] for step in STEPS}
    for scheme in LEVELS:
        words = f"{PER_NODE} ranks a node, " + ("one level" if scheme == "balanced" else "two levels")
        series[words] = [gain(f"levels-{m}" + "-computing" * c, scheme, c) for m, c in columns]
    axes = new_axes("", "times as fast as dense", title="16 nodes, 25 Gb/s, 10 us, simulated")
    groups = [m + (",\nwith computing" if c else "") for m, c in columns]
    bars_of(axes, groups, series)
    head = ["step"] + [m + (", with computing" if c else "") for m, c in columns]
    lines = [[words] + [number(x) for x in values] for words, values in series.items()]
    return save(axes, "breakdown", "What each step gains") + "\n" + table(head, lines)


def over_dense(row, threads):
    """How many times as fast a call is as the best dense algorithm, whose sums T threads share."""
    return max(dense_of(row | {"ranks": NODES}), sums_of(row) / threads) / row["median_s"]


def threads_of_ranks():
    """Times with computing on 1, 4 and 16 threads of a rank."""
    head = ["workload", "Gb/s", "threads", "floor, ms", "balanced, ms", "over the floor", "work alone"]
    head += ["recursive doubling", "split_allgather", "dense", intervals.HEAD]
    lines = []
    for model, rate, threads in itertools.product(SIZES, RATES, THREADS):
        rows = {row["scheme"]: row for row in rows_of(f"threads-16-{model}-{rate}-{threads}")}
        if "balanced" not in rows:
            continue
        ours = rows["balanced"]
        time, floor = ours["median_s"], floor_of(ours)
        times = [
            rows[s]["median_s"] if s in rows else math.nan for s in ("recursive_doubling", "split_allgather")
        ]
        values = [
            number(floor * 1e3),
            number(time * 1e3),
            number(time / floor),
            number(ours["charged_s"] * 1e3),
        ]
        values += [number(t / time) for t in times] + [number(over_dense(ours, threads))]
        values.append(intervals.relative_interval(f"seed-{model}-{rate}-{threads}"))
        lines.append([model, str(rate), str(threads)] + values)
    return table(head, lines)


def overlapped(row, rate):
    """The least time of a call at a rate whose work is all done while messages move: the longer of both."""
    most = max(row["bytes_sent_max"], row["bytes_received_max"])
    return max(most / rate, row["charged_s"])


def all_of(model, rate, threads):
    """The row of each scheme in a cell, but for `auto` and dense."""
    found = {}
    for family in ("threads", "peers", "omni"):
        for row in rows_of(f"{family}-16-{model}-{rate}-{threads}"):
            if row["scheme"] not in ("auto", "dense"):
                found[variant_of(row)] = row
    return found


def least_overlapped(here, elsewhere):
    """A lower bound of each scheme, if all its work were hidden: the least with the formats that it has at
    any rate, as hidden work may choose others."""
    return {
        scheme: min(overlapped(found[scheme], rate_of(row)) for found in elsewhere if scheme in found)
        for scheme, row in here.items()
    }


def bounds_of(model, rate, threads):
    """The bounds of a cell."""
    elsewhere = [all_of(model, other, threads) for other in RATES]
    return least_overlapped(all_of(model, rate, threads), elsewhere)


def peers_computing():
    """Peers over `balanced` with computing, also if their work were hidden behind messages."""
    cells, schemes = {}, {}
    for cell in itertools.product(SIZES, PEER_RATES, PEER_THREADS):
        found, bounds = all_of(*cell), bounds_of(*cell)
        if "balanced" in found:
            ours = found["balanced"]["median_s"]
            ratios = {s: (row["median_s"] / ours, bounds[s] / ours) for s, row in found.items()}
            cells[cell] = {s: f"{number(time)} ({number(bound)})" for s, (time, bound) in ratios.items()}
            schemes |= dict.fromkeys(found)
    lines = [[*cell, *(found.get(scheme, "-") for scheme in schemes)] for cell, found in cells.items()]
    return table(["workload", "Gb/s", "threads", *schemes], lines)


def regret_computing():
    """Time of `auto` over that of the fastest scheme, with computing, by rate and threads of a rank."""
    lines = []
    for rate, threads in itertools.product(RATES, THREADS):
        cells, ran, fastest = [], set(), set()
        for model in SIZES:
            rows = {row["scheme"]: row for row in rows_of(f"threads-16-{model}-{rate}-{threads}")}
            auto = rows.pop("auto", None)
            if auto is not None:
                best = min(rows.values(), key=lambda row: row["median_s"])
                cells.append(number(auto["median_s"] / best["median_s"], 3))
                ran.add(auto["ran"])
                fastest.add(best["scheme"])
        if len(cells) == len(SIZES):
            lines.append([rate, threads, ", ".join(sorted(ran)), ", ".join(sorted(fastest))] + cells)
    return table(["Gb/s", "threads", "`auto` ran", "fastest"] + list(SIZES), lines)


HEADLINE = [(25, 1), (25, 16), (100, 1), (100, 4), (100, 16)]  # Gb/s, threads


def headline():
    """For each workload: over the floor, and dense over `balanced`."""
    head = ["workload", "messages alone, 25 Gb/s"]
    head += [f"{rate} Gb/s, {threads} thread{'s' * (threads > 1)}" for rate, threads in HEADLINE]
    lines = []
    for model in SIZES:
        alone = next((r for r in rows_of(f"speedup-{model}") if r["scheme"] == "balanced"), None)
        cells = [(alone, dense_of(alone) / alone["median_s"])] if alone else []
        for rate, threads in HEADLINE:
            rows = rows_of(f"threads-16-{model}-{rate}-{threads}")
            ours = next((row for row in rows if row["scheme"] == "balanced"), None)
            cells += [(ours, over_dense(ours, threads))] if ours else []
        shown = [f"{number(row['median_s'] / floor_of(row))}; {number(over, 1)}" for row, over in cells]
        if len(shown) == len(head) - 1:
            lines.append([model] + shown)
    return table(head, lines)
