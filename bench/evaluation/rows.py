# SPDX-License-Identifier: BSD-3-Clause
"""The section on rows: their measurements, tables and figures, for bench/evaluate."""

import itertools
import math
from typing import NamedTuple

from evaluation import intervals
from evaluation.compute import SEGMENT, grain_of, least_overlapped
from evaluation.figures import (
    bars_of,
    floor_of,
    lines_of,
    new_axes,
    number,
    rows_of,
    save,
    table,
    variant_of,
)

PEERS = "recursive_doubling,split_allgather,ring,allgather,omni,sparse_ps,oktopk"
DENSE_PEER = "split_dense"  # its dense parts of an unscaled table do not fit into memory
CHARGED_PEERS = "balanced,auto,recursive_doubling,split_allgather,allgather,omni,oktopk,sparse_ps"
CHARGED_RATES = [25, 100]
# Ends of work are not rounded to a microsecond, since much takes less.
CHARGED = ["--compute", "-p", "0.01"]
UNSCALED = "rows-lstm-uniform-unscaled"
BOTH_OMNI = ["-P", "auto,range"]  # cyclic, its default, and contiguous blocks
RANKS = [16, 64, 128]
FEW_PEERS, NEAREST_PEER = ("nmt", "400", 128), "recursive_doubling"  # more do not fit into 24 GB
# At 64 and 128 ranks: two to four peers, those that were nearest at 16 ranks, within 1.5 times of `balanced`.
NEAR_PEERS = {
    ("lstm", "skewed", "full"): "omni,recursive_doubling",
    ("lstm", "skewed", "400"): "recursive_doubling,oktopk,omni",
    ("lstm", "uniform", "full"): "split_allgather,recursive_doubling,omni",
    ("lstm", "uniform", "400"): "split_allgather,recursive_doubling,omni",
    ("nmt", "skewed", "full"): "omni,recursive_doubling",
    ("nmt", "skewed", "400"): "recursive_doubling,omni,oktopk",
    ("nmt", "uniform", "full"): "recursive_doubling,split_allgather,omni",
    ("nmt", "uniform", "400"): "recursive_doubling,split_allgather,omni",
    ("deepfm", "skewed", "full"): "omni,recursive_doubling",
    ("deepfm", "skewed", "400"): "oktopk,omni,recursive_doubling",
    ("deepfm", "uniform", "full"): "recursive_doubling,split_allgather,oktopk",
    ("deepfm", "uniform", "400"): "sparse_ps,oktopk,omni,recursive_doubling",
}
SCALING = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024]
SCALED = "balanced,auto,recursive_doubling,split_allgather,allgather,omni"
WORDS = [400, 1024, 4096, 8192]  # of a rank's batch of text
WIDTHS = [64, 512]
BATCH = 400  # rows of a rank
FORECAST = "rows-forecast"
RATE, LATENCY = 25e9 / 8, 10e-6  # of the forecast


class Table(NamedTuple):
    """An embedding table of the paper's models, as in bench/lib/workload.c; the overlap on 16 ranks."""

    elements: int
    row: int
    density: float
    overlap: float
    skew: float
    scale: dict  # of the full batch, for each number of ranks, so that it fits into memory

    def rows(self):
        return self.elements // self.row


TABLES = {
    "lstm": Table(406_000_000, 512, 0.0113, 0.48, 0.80, {16: 8, 64: 32, 128: 64}),
    "nmt": Table(112_000_000, 512, 0.0247, 0.32, 0.77, {16: 4, 64: 16, 128: 32}),
    "deepfm": Table(214_000_000, 16, 0.0280, 0.31, 0.70, {16: 32, 64: 128, 128: 128}),
}


class Case(NamedTuple):
    model: str
    spread: str  # skewed or uniform
    batch: str  # full, or rows of a rank

    def name(self, ranks, *more):
        return "-".join(["rows", *self, str(ranks), *more])

    def words(self):
        return f"{self.model}, {self.spread}, " + ("full" if self.batch == "full" else f"{self.batch} rows")

    def scale(self, ranks):
        return TABLES[self.model].scale.get(ranks, 1) if self.batch == "full" else 1

    def nnz(self):
        t = TABLES[self.model]
        return t.rows() * t.density if self.batch == "full" else BATCH

    def peers(self):
        return PEERS + ("," + DENSE_PEER if self.batch == "full" else "")

    def tensor(self):
        """Options of mpix_sparse_perf."""
        t = TABLES[self.model]
        if (self.spread, self.batch) == ("skewed", "full"):
            return f"--workload {self.model} -R {t.row}".split()
        options = f"-c {t.rows()} -R {t.row} -d {self.nnz() / t.rows():.4g} --overlap {t.overlap}"
        return options.split() + (["--skew", str(t.skew)] if self.spread == "skewed" else [])


CASES = [Case(m, s, b) for m in TABLES for s in ("skewed", "uniform") for b in ("full", str(BATCH))]
SCALING_CASE = CASES[0]
OMNI_CASE = Case("nmt", "skewed", "full")


def simulation(ranks, scale, tensor, schemes, *more, options=()):
    command = f"bench/simulate -n {ranks} -r 25 -s {scale}".split() + list(options)
    timed = f"-n 1 -w 1 --check 0 --alone -S {schemes}".split()
    return command + ["--"] + list(tensor) + timed + list(more)


def found_in(name):
    """Rows of a file by scheme, without those of our schemes that were told to have contiguous parts."""
    rows = [row for row in rows_of(name) if row["partition_requested"] == "auto" or row["scheme"] == "omni"]
    return {variant_of(row): row for row in rows}


def charged(case):
    """With computing: blocks and segments as long as the full table would have them."""
    scale = case.scale(16)
    command = simulation(16, scale, case.tensor(), "balanced", "--columns", "1,auto", options=CHARGED)
    grain = ["-g", str(grain_of(case.nnz(), 16))]
    return ["env", f"MPIX_SPARSE_SEGMENT={SEGMENT // scale}"] + command + grain


def charged_peers(case, rate):
    """The name and command of peers with computing at a rate."""
    scale = case.scale(16)
    command = simulation(16, scale, case.tensor(), CHARGED_PEERS, *BOTH_OMNI, options=CHARGED)
    command[command.index("-r") + 1] = str(rate)
    command = ["env", f"MPIX_SPARSE_SEGMENT={SEGMENT // scale}"] + command
    return case.name(16, "computing", str(rate)), command + ["-g", str(grain_of(case.nnz(), 16))]


def scaling_name(n):
    return SCALING_CASE.name(n) if n in RANKS else f"rows-ranks-{n}"


def scaling_measurements(ranks):
    for n in ranks:
        scale = max(8, 2 ** math.ceil(math.log2(n)) // 2)
        if n > max(RANKS):
            command = simulation(n, scale, SCALING_CASE.tensor(), "balanced", options=["-p", "5"])
            yield scaling_name(n), command
        elif n not in RANKS:
            yield scaling_name(n), simulation(n, scale, SCALING_CASE.tensor(), SCALED)


def text_measurements(text):
    """Batches of a text, whose folder is the working directory; empty without a text."""
    for width in WIDTHS if text else []:
        for words in WORDS:
            tensor = f"--workload text:{text.name} --batch {words} -R {width}".split()
            schemes = f"balanced,auto,{PEERS},{DENSE_PEER}"
            yield f"rows-text-{words}-{width}", simulation(16, 1, tensor, schemes, *BOTH_OMNI)


def unscaled():
    """The uniform table of the LSTM in its full size."""
    tensor = "-c 793470 -R 512 -d 0.0113 --overlap .48".split()
    return UNSCALED, simulation(16, 1, tensor, "balanced,recursive_doubling,auto", options=["-l", "10"])


def contiguous_omni():
    """OmniReduce as its authors have it, on more ranks."""
    for ranks in RANKS[1:]:
        command = simulation(ranks, OMNI_CASE.scale(ranks), OMNI_CASE.tensor(), "omni", "-P", "range")
        yield f"rows-omni-{ranks}", command


def measurements(text):
    """All measurements of rows, the most informative ones first."""
    for case in CASES:
        schemes = "balanced,auto," + case.peers()
        yield case.name(16), simulation(16, case.scale(16), case.tensor(), schemes, *BOTH_OMNI)
    for case in CASES:
        yield case.name(16, "computing"), charged(case)
    for case in filter(lambda case: case.batch == "full", CASES):
        for rate in CHARGED_RATES:
            yield charged_peers(case, rate)
    yield from text_measurements(text)
    yield unscaled()
    yield from scaling_measurements([n for n in SCALING if n < 64])
    for ranks in RANKS[1:]:
        for case in CASES:
            few = (case.model, case.batch, ranks) == FEW_PEERS
            schemes = "balanced,auto," + (NEAREST_PEER if few else NEAR_PEERS[case])
            yield case.name(ranks), simulation(ranks, case.scale(ranks), case.tensor(), schemes)
    yield from scaling_measurements([n for n in SCALING if n > 64])
    yield from contiguous_omni()
    yield FORECAST, ["bench/row-forecast"]


def others_of(found):
    return {s: row["median_s"] for s, row in found.items() if s not in ("balanced", "auto")}


def columns_of(row):
    return row["columns"] if row["columns"] > 1 else "-"


HEAD = ["floor, ms", "balanced, ms", "over the floor", "columns", "auto, ms", "ran", "best other", "its time"]


def line_of(found):
    """The cells of one measurement: of the best other scheme the time over that of `balanced`."""
    ours, auto, others = found["balanced"], found["auto"], others_of(found)
    t = ours["median_s"]
    best = min(others, key=others.get, default="-")
    cells = [number(floor_of(ours) * 1e3), number(t * 1e3), number(t / floor_of(ours)), columns_of(ours)]
    cells += [number(auto["median_s"] * 1e3), auto["ran"]]
    return cells + [best, number(others[best] / t) if others else "-"]


def rows_by_ranks():
    """Time of rows at 16, 64 and 128 ranks, against the floor and the best other scheme."""
    lines = []
    for case in CASES:
        for ranks in RANKS:
            found = found_in(case.name(ranks))
            if found:
                ours = found["balanced"]
                cells = [case.words(), ranks, number(ours["nnz_in_mean"], 0)] + line_of(found)
                lines.append(cells + [intervals.relative_interval("seed-" + case.name(ranks))])
    return table(["workload", "ranks", "rows a rank"] + HEAD + [intervals.HEAD], lines)


def peer_table(names, head):
    """Time of each peer over that of `balanced`, for measurements by their words."""
    found = {words: found_in(name) for words, name in names.items()}
    found = {words: rows for words, rows in found.items() if rows}
    schemes = list(dict.fromkeys(s for rows in found.values() for s in others_of(rows)))
    lines = []
    for words, rows in found.items():
        ours = rows["balanced"]["median_s"]
        ratios = [others_of(rows).get(s, math.nan) / ours for s in schemes]
        lines.append([words] + [number(x) for x in ratios])
    return table([head] + schemes, lines)


def rows_peers():
    """All peers at 16 ranks."""
    names = {case.words(): case.name(16) for case in CASES}
    found = {words: found_in(name) for words, name in names.items()}
    shown = [case for case in CASES if case.batch == "full" and found[case.words()]]
    axes = new_axes(
        "",
        "time, floor = 1",
        title="rows on 16 ranks, 25 Gb/s, 10 us, formats chosen (omni: blocks), simulated",
        ylim=(0, 9),
    )
    schemes = [
        "balanced",
        "recursive_doubling",
        "split_allgather",
        "allgather",
        "omni",
        "omni, contiguous",
        "oktopk",
        "sparse_ps",
    ]
    series = {}
    for scheme in schemes:
        rows = [found[case.words()][scheme] for case in shown]
        series["omni, cyclic" if scheme == "omni" else scheme] = [
            row["median_s"] / floor_of(row) for row in rows
        ]
    bars_of(axes, [f"{case.model},\n{case.spread}" for case in shown], series)
    figure = save(axes, "rows-peers", "Time of rows over the floor, by workload and scheme")
    return figure + "\n" + peer_table(names, "workload")


def rows_computing():
    """With computing: one column against the number that is chosen."""
    lines = []
    for case in CASES:
        rows = {row["columns_requested"]: row for row in rows_of(case.name(16, "computing"))}
        if not rows:
            continue
        one, auto = rows["1"], rows["auto"]
        alone = found_in(case.name(16)).get("balanced", {}).get("median_s", math.nan)
        cells = [number(x * 1e3) for x in (one["median_s"], auto["median_s"], alone)]
        lines.append([case.words()] + cells + [columns_of(auto), number(one["median_s"] / auto["median_s"])])
    head = ["workload", "one column, ms", "columns chosen, ms", "without computing", "columns", "gain"]
    return table(head, lines)


def charged_bounds(case, rate):
    """As compute.bounds_of, for rows of one thread."""
    found = {other: found_in(case.name(16, "computing", str(other))) for other in CHARGED_RATES}
    return least_overlapped(found[rate], found.values())


def rows_computing_peers():
    """Peers over `balanced` with computing, also if their work were hidden behind messages."""
    cells, schemes = {}, {}
    for case, rate in itertools.product(CASES, CHARGED_RATES):
        found = found_in(case.name(16, "computing", str(rate)))
        if found:
            auto, ours = found.pop("auto"), found.pop("balanced")["median_s"]
            bounds = charged_bounds(case, rate)
            ratios = {s: (row["median_s"] / ours, bounds[s] / ours) for s, row in found.items()}
            named = {s: f"{number(time)} ({number(bound)})" for s, (time, bound) in ratios.items()}
            schemes |= dict.fromkeys(ratios)
            cells[case.words(), rate] = [number(ours * 1e3), auto["ran"], named]
    lines = [
        [*key, ours, ran, *(named.get(s, "-") for s in schemes)] for key, (ours, ran, named) in cells.items()
    ]
    return table(["workload", "Gb/s", "balanced, ms", "`auto` ran", *schemes], lines)


def rows_scaling():
    """Full batches of the LSTM's table against ranks."""
    series, lines = {}, []
    for n in SCALING:
        found = found_in(scaling_name(n))
        if not found:
            continue
        for scheme in filter(found.__contains__, SCALED.split(",")):
            row = found[scheme]
            series.setdefault(scheme, []).append((n, row["median_s"] / floor_of(row)))
        ours, others = found["balanced"], others_of(found)
        best = min(others, key=others.get, default="-")
        cells = [number(ours["median_s"] * 1e3), number(ours["median_s"] / floor_of(ours)), columns_of(ours)]
        cells += [number(ours["median_s"] / ours["predicted_s"]), best]
        cells += [number(others[best] / ours["median_s"]) if others else "-"]
        lines.append([n, ours["scale"], number(ours["nnz_in_mean"], 0)] + cells)
    axes = new_axes(
        "ranks",
        "time, floor = 1",
        xscale="log",
        title="lstm in rows of 512, formats chosen, simulated; on 64 and 128 ranks the nearest schemes alone",
        ylim=(0, 6),
    )
    axes.set_xticks(SCALING, SCALING)
    lines_of(axes, series)
    head = ["ranks", "scale", "rows a rank", "balanced, ms", "over the floor", "columns"]
    head += ["over the model", "best other", "its time"]
    return save(axes, "rows-scaling", "Time of rows over the floor against ranks") + "\n" + table(head, lines)


def forecasts():
    """For each number of ranks: the seconds of the model, the floor, and the simulated seconds."""
    for row in rows_of(FORECAST):
        n, found = row["ranks"], found_in(scaling_name(row["ranks"])).get("balanced")
        values = (n - 1) / n * row["rows"] * (1 + row["gamma"]) * 4 * row["row"]
        yield n, row["predicted_s"], values / RATE + 2 * LATENCY, found["median_s"] if found else math.nan


def rows_forecast():
    lines = []
    for n, seconds, floor, simulated in forecasts():
        cells = [number(seconds * 1e3, 0), number(seconds / floor), number(simulated * 1e3, 0)]
        lines.append([n, *cells, number(seconds / simulated)])
    head = ["ranks", "forecast of `balanced`, ms", "over the floor", "simulated, ms", "forecast / simulated"]
    return table(head, lines)


def rows_of_text():
    """Batches of a text."""
    names = {f"{words} words, rows of {w}": f"rows-text-{words}-{w}" for w in WIDTHS for words in WORDS}
    lines = []
    for words, name in names.items():
        found = found_in(name)
        if found:
            lines.append([words, number(found["balanced"]["nnz_in_mean"], 0)] + line_of(found))
    return table(["batch", "rows a rank"] + HEAD, lines) + "\n" + peer_table(names, "batch")


PARTS = [
    rows_by_ranks,
    rows_peers,
    rows_computing,
    rows_computing_peers,
    rows_scaling,
    rows_forecast,
    rows_of_text,
]
