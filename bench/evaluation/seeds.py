# SPDX-License-Identifier: BSD-3-Clause
"""Results of the other pages with five seeds: measurements and parts, for bench/evaluate."""

import itertools
import math

from evaluation.compute import NODES, RATES, THREADS, best_dense, on_threads
from evaluation.figures import COLOURS, MARKERS, dense_of, rows_of, table
from evaluation.intervals import SEEDS, files_of, interval, is_measured, times_of_seeds, words_of
from evaluation.rows import CASES, simulation as row_simulation

SCALES = {"lstm": 64, "deepfm": 64, "nmt": 32, "llama": 8}
SCALING = [2, 3, 4, 6, 8, 12, 24, 32]  # ranks
SCALING_SCALE = 128  # as on the page of single elements
SCHEMES = "balanced,auto,recursive_doubling,allgather"
COMPARED = "balanced,recursive_doubling"
SHOWN = [(25, 1), (100, 1), (100, 16)]  # Gb/s and threads, with computing: cells of a table here
MORE_RANKS, MORE_SCALE = 64, 8  # tensors of more ranks are divided by more, as on the other pages


def elements(workload, ranks, schemes, network="", first="", last=""):
    scale = SCALES[workload] * (MORE_SCALE if ranks == MORE_RANKS else 1)
    if ranks in SCALING:
        scale = SCALING_SCALE
    words = f"bench/simulate -n {ranks} -r 25 -s {scale} {network} -- --workload {workload} {first}"
    return f"{words} -n 1 -w 1 --check 0 --alone -S {schemes} {last}".split()


def with_schemes(words, schemes):
    at = words.index("-S")
    return words[: at + 1] + [schemes] + words[at + 2 :]


def setting_of(workload, ranks):
    """The name of the setting without computing."""
    return f"seed-{workload}" if ranks == NODES else f"seed-{ranks}-{workload}"


def settings():
    """The name of each setting, and its command, in which SEED stands for the seed."""
    seeded = "--seed SEED"
    for workload in SCALES:
        yield setting_of(workload, NODES), elements(workload, NODES, SCHEMES, "-d lr", first=seeded)
    for workload in SCALES:
        yield setting_of(workload, MORE_RANKS), elements(workload, MORE_RANKS, COMPARED, last=seeded)
    for ranks in SCALING:
        yield setting_of("nmt", ranks), elements("nmt", ranks, COMPARED, last=seeded)
    for rate, threads in itertools.product(RATES, THREADS):
        for workload in SCALES:
            words = with_schemes(on_threads(workload, rate, threads)[1], COMPARED)
            yield f"seed-{workload}-{rate}-{threads}", words + seeded.split()
    for case in CASES:
        words = row_simulation(NODES, case.scale(NODES), case.tensor(), COMPARED)
        yield "seed-" + case.name(NODES), words + seeded.split()


def measurements():
    for name, words in settings():
        for seed in SEEDS:
            yield f"{name}-{seed}", [str(seed) if word == "SEED" else word for word in words]


def gains_of(setting, scheme, computing=False):
    """The gain over dense with each seed."""
    denses = [
        best_dense(rows[0], True) if computing else dense_of(rows[0])
        for rows in map(rows_of, files_of(setting))
    ]
    return [dense / time for dense, time in zip(denses, times_of_seeds(setting, scheme))]


def ratios_of(setting):
    """Recursive doubling over `balanced` with each seed."""
    times = [times_of_seeds(setting, scheme) for scheme in COMPARED.split(",")]
    return [theirs / ours for ours, theirs in zip(*times)]


def by_seed():
    lines = []
    for workload in SCALES:
        setting = f"seed-{workload}"
        if is_measured(setting):
            gains = [gains_of(setting, s) for s in ("balanced", "auto", "recursive_doubling")]
            lines.append([workload, *map(words_of, gains), words_of(ratios_of(setting), 3)])
    head = ["workload", "`balanced` over dense", "`auto` over dense", "recursive doubling over dense"]
    return table(head + ["recursive doubling / `balanced`"], lines)


def elsewhere():
    """Settings of other pages: words, name of the setting, and whether computing is charged."""
    for workload in SCALES:
        yield f"{MORE_RANKS} ranks, {workload}", setting_of(workload, MORE_RANKS), False
    for ranks in SCALING:
        yield f"{ranks} ranks, nmt", setting_of("nmt", ranks), False
    for rate, threads in SHOWN:
        for workload in SCALES:
            words = f"computing, {rate} Gb/s, {threads} thread{'s' * (threads > 1)}, {workload}"
            yield words, f"seed-{workload}-{rate}-{threads}", True
    for case in CASES:
        yield f"rows, {case.words()}", "seed-" + case.name(NODES), False


def by_seed_elsewhere():
    lines = []
    for words, setting, computing in elsewhere():
        if is_measured(setting):
            gains = gains_of(setting, "balanced", computing)
            lines.append([words, words_of(gains), words_of(ratios_of(setting), 3)])
    return table(["setting", "`balanced` over dense", "recursive doubling / `balanced`"], lines)


def widest(settings_of):
    """The widest interval of times, relative to the mean."""
    widths = []
    for setting in filter(is_measured, settings_of):
        for scheme in COMPARED.split(","):
            mean, half = interval(times_of_seeds(setting, scheme))
            widths.append(half / mean)
    return max(widths, default=math.nan)


def draw(axes):
    for i, scheme in enumerate(("balanced", "recursive_doubling")):
        found = [interval(gains_of(f"seed-{m}", scheme)) for m in SCALES]
        places = [x + (i - 0.5) * 0.2 for x in range(len(found))]
        look = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none", "capsize": 4}
        axes.errorbar(places, [m for m, _ in found], [half for _, half in found], label=scheme, **look)
    axes.set_xticks(range(len(SCALES)), SCALES, fontsize=7)
    axes.set(title="five seeds, 95 % intervals", ylabel="times as fast as dense", yscale="log")
    axes.legend(fontsize=7)


PARTS = [by_seed, by_seed_elsewhere]
