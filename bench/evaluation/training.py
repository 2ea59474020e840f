# SPDX-License-Identifier: BSD-3-Clause
"""Step times of training on emulated hosts, measured by bench/train, for bench/evaluate."""

from evaluation.figures import COLOURS, RESULTS, number, rows_of, save_figure, table

MODELS = ["language", "dlrm"]
WAYS = ["dense", "AGsparse", "recursive_doubling", "auto"]
TIMELINE = "training-language-4-200"  # the case of the figure
SHARDED = "sharded"  # two ranks on one machine, with and without shards of the optimizer's state
LAYERS = {"forward": 0, "backward": 1, "wait": 2, "update": 3}  # parts of a step, and their colours


def cases():
    """Model, hosts and rate in Mb/s of each file of results."""
    found = [tuple(file.stem.split("-")[1:]) for file in RESULTS.glob("training-*-*-*.json")]
    return sorted(found, key=lambda case: (MODELS.index(case[0]), int(case[1]), int(case[2])))


def ways_of(case):
    """The record of each way to sum gradients."""
    return {row["way"]: row for row in rows_of("training-" + "-".join(case))}


def training():
    head = ["model", "hosts", "Mb/s", "dense, ms", "AGsparse, ms", "recursive doubling, ms", "`auto`, ms"]
    head += ["dense / `auto`", "best other sparse / `auto`", "MB sent by dense", "by `auto`"]
    lines = []
    for case in cases():
        found = ways_of(case)
        time = {way: row["median_s"] for way, row in found.items()}
        waits = {way: row["wait_median_s"] for way, row in found.items()}
        line = list(case) + [f"{1e3 * time[way]:.0f} ({1e3 * waits[way]:.0f})" for way in WAYS]
        line += [number(time["dense"] / time["auto"])]
        line += [number(min(time["AGsparse"], time["recursive_doubling"]) / time["auto"])]
        lines.append(line + [number(found[way]["bytes_sent_max"] / 1e6) for way in ("dense", "auto")])
    return table(head, lines)


def draw_timeline(found):
    """A step of each way on rank 0: computing and waiting above, calls below."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mpix-sparse"
    from matplotlib import pyplot

    figure, all_axes = pyplot.subplots(len(WAYS), 1, figsize=(8, 6.4), layout="constrained")
    for axes, way in zip(all_axes, WAYS):
        calls = []
        for name, begin, end in found[way]["spans"]:
            if name in LAYERS:
                axes.barh(0, 1e3 * (end - begin), 0.8, 1e3 * begin, color=COLOURS[LAYERS[name]], label=name)
            else:
                calls.append(name)
                axes.barh(len(calls), 1e3 * (end - begin), 0.6, 1e3 * begin, color=COLOURS[6])
        axes.set_yticks(range(len(calls) + 1), ["rank 0", *(f"sum of {name}" for name in calls)], fontsize=8)
        axes.set_title(way, fontsize=9, loc="left")
        axes.set_ylim(len(calls) + 0.6, -0.6)
    all_axes[-1].set_xlabel("ms; each step has its own scale")
    all_axes[0].legend(fontsize=8, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
    return save_figure(figure, "training-timeline", "A step of training in each way")


def training_timeline():
    found = {row["way"]: row for row in rows_of(TIMELINE)}
    return draw_timeline(found) if found else "Not measured yet.\n"


def sharded_rows(kind):
    """The lines of a kind: setup, step or summary."""
    return [row for row in rows_of(SHARDED) if row["kind"] == kind]


def sharding():
    ways = {"mpix_sparse": "all rows on each rank", "sharded": "a row on one rank"}
    lines = []
    for row in sharded_rows("summary"):
        cells = [f"{row['loss']:.4f}", f"{row['step_ms']:.0f}", number(row["state_bytes"] / 1e6)]
        lines.append([ways[row["communication"]], *cells])
    return table(["state of the optimizer", "loss", "step, ms", "state of a rank, MB"], lines)


PARTS = [training, training_timeline, sharding]
