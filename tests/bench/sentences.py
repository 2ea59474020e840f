# SPDX-License-Identifier: BSD-3-Clause
"""Results and their figures in sentences, for tests/bench/evaluation.py."""

from evaluation.figures import rows_of


def real(x, digits=2):
    """Format as in the text: without the zero before the point, and halves rounded up."""
    text = f"{x + 1e-9:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def span(values, digits=2):
    ends = [real(min(values), digits), real(max(values), digits)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def percent(x):
    return real(100 * x, 0)


def row_of(name, scheme="balanced"):
    return next(row for row in rows_of(name) if row["scheme"] == scheme)


def time_of(name, scheme="balanced"):
    return row_of(name, scheme)["median_s"]
