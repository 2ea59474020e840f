# SPDX-License-Identifier: BSD-3-Clause
"""Results with five seeds, and their intervals, for bench/evaluate."""

import math

from evaluation.figures import rows_of

SEEDS = [42, 1, 2, 3, 4]  # the first is the default
HEAD = "five seeds"  # of a column of relative_interval


def files_of(setting):
    return [f"{setting}-{seed}" for seed in SEEDS]


def is_measured(setting):
    return all(map(rows_of, files_of(setting)))


def interval(values):
    """Mean and half the width of the 95 % interval of Student's distribution, of five values."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return mean, 2.776 * deviation / math.sqrt(len(values))


def times_of_seeds(setting, scheme):
    rows = [next(r for r in rows_of(name) if r["scheme"] == scheme) for name in files_of(setting)]
    return [row["median_s"] for row in rows]


def words_of(values, digits=2):
    return "{:.{d}f} ± {:.{d}f}".format(*interval(values), d=digits)


def relative_interval(setting):
    """Half the width of the interval of the time of `balanced`, over the mean."""
    if not is_measured(setting):
        return "-"
    mean, half = interval(times_of_seeds(setting, "balanced"))
    return f"± {100 * half / mean:.2f} %"
