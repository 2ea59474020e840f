# SPDX-License-Identifier: BSD-3-Clause
"""Sentences of the evaluation on other collectives, recorded traces, forecasts of rows, and BERT."""

from evaluation import broadcasts, halves, rows, traces
from evaluation.figures import floor_of, rows_of
from sentences import real, span


def of_halves():
    at = {}
    for ranks, workload, scale in halves.cases():
        rows = [halves.row_of(ranks, workload, half, scale) for half in halves.HALVES]
        at[ranks, workload, scale] = rows
    both = [halves.both_over_allreduce(*case) for case, (_, gather) in at.items() if gather is not None]
    yield f"Both halves take at most {max(both):.2f} times the allreduce of `balanced`"
    few = [halves.over_floor(row) for (ranks, *_), (row, _) in at.items() if ranks == 16]
    fine = [halves.over_floor(row) for (ranks, *_), (row, gather) in at.items() if gather is None]
    yield f"A reduce_scatter takes {span(few)} times its floor on 16 ranks, and {span(fine)} times on 64"
    coarse = [row["push_imbalance"] for (ranks, *_), (row, gather) in at.items() if ranks == 64 and gather]
    levels = [{name: row["median_s"] for name, row in halves.levels_of(w).items()} for w in halves.WORKLOADS]
    gains = [times["balanced"] / times["two_level"] for times in levels]
    yield f"`two_level` makes a reduce_scatter {span(gains)} times as fast as `balanced` there"
    yield f"divided by eight times more, the largest part has {span(coarse)} times the mean"


def of_contiguous_halves():
    found = [halves.contiguous_of(ranks, w) for w in halves.WORKLOADS for ranks in halves.SCALES]
    gains = [times["balanced"] / times["recursive_halving"] for times in found]
    yield f"makes such a reduce_scatter {span(gains)} times as fast as `balanced`, and `auto` chooses it"
    assert all(abs(times["auto"] / times["recursive_halving"] - 1) < 1e-3 for times in found)
    wholes = [times["balanced"] / times["allreduce"] for times in found if times["allreduce"] > 0]
    yield f"`balanced` takes {span(wholes)} times as long as for a whole allreduce"


def of_broadcasts():
    few, many = (broadcasts.times_of(n) for n in broadcasts.RANKS)
    over = [
        broadcasts.over_floor(row)
        for n in broadcasts.RANKS
        for row in rows_of(broadcasts.name_of(n))
        if row["method"] == "delta"
    ]
    yield f"`MPIX_Sparse_bcast_delta` takes {over[0]:.2f} times the floor on 16 ranks"
    yield f"and {over[1]:.2f} times on 64"
    gains = {m: [t[m] / t["delta"] for t in (few, many)] for m in ("lists", "dense")}
    yield "Against it the gain is {:.1f} and {:.1f} times for lists".format(*gains["lists"])
    yield "{:.0f} and {:.0f} times for all weights".format(*gains["dense"])


def of_levels():
    over = {
        row["method"]: broadcasts.over_floor(row, broadcasts.LEVELS_RATE)
        for row in rows_of(broadcasts.LEVELS)
    }
    yield f"takes {over['delta']:.2f} times the floor there: a piece crosses to a host once."
    yield f"take {over['lists']:.0f} and {over['dense']:.0f} times the floor"


def of_traces():
    found = [traces.statistics_of(name) for name in traces.TABLES]
    least, most = min(row["overlap_min"] for row in found), max(row["overlap_max"] for row in found)
    means = " and ".join(real(row["overlap_mean"]) for row in found)
    yield f"Pairs of ranks share {real(least)} to {real(most)} of their rows, on the average {means}."
    eighths = [100 * sum(sum(part[:4]) for part in row["shares"]) / row["ranks"] for row in found]
    yield f"{min(eighths):.0f} to {max(eighths):.0f} % of a rank's rows are in the first of 8 parts"
    unions = sorted(f"{row['gamma'][-1]:.1f}" for row in found)
    yield f"All rows of 16 ranks are {unions[0]} and {unions[1]} times those of one."
    calls = [rows.found_in(f"trace-{name}") for name in traces.TABLES]
    over = [found["balanced"]["median_s"] / floor_of(found["balanced"]) for found in calls]
    yield f"`balanced` takes {span(over)} times the floor. The next scheme"
    others = [min(rows.others_of(found).values()) / found["balanced"]["median_s"] for found in calls]
    yield f"The next scheme takes {span(others)} times as long."


def of_forecasts():
    found = {n: times for n, *times in rows.forecasts()}
    checked = [seconds / simulated for seconds, _, simulated in found.values() if simulated == simulated]
    yield f"On 64 to 256 ranks the forecast is {span(checked)} times the simulated time."
    over = [f"{found[n][0] / found[n][1]:.2f}" for n in (512, 1024)]
    yield f"It expects {over[0]} times the floor on 512 ranks and {over[1]} times on 1024."


def of_bert():
    """The union of 128 ranks, and the elements of the pull over those of a dense one."""
    row = rows_of("gamma-bert-128")[0]
    dense = row["gamma"] * row["density"]
    pulls = [1 / dense, 1 / (2 * dense), 1 / (dense + 1 / 32)]
    words = "{:.1f} %; {:.1f} times without indices, {:.1f} times in coordinates, {:.1f} times with the hash"
    yield words.format(100 * dense, *pulls)


PARTS = [of_halves, of_contiguous_halves, of_broadcasts, of_levels, of_traces, of_forecasts, of_bert]
