# SPDX-License-Identifier: BSD-3-Clause
"""The models, and the least times that follow from what is in bench/results."""

import math

MODELS = ["lstm", "deepfm", "nmt", "llama", "opt", "gemma"]
BUCKETS = {"llama", "opt", "gemma"}  # alike but for their names


def rate_in(row):
    return row["label"].split(":")[2].removesuffix("Gb/s")


def rate_of(row):
    """Bytes a second of the network that a row's label tells, as it was scaled."""
    return float(rate_in(row)) * 1e9 / 8 / row["scale"]


def latency_of(row):
    return float(row["label"].split(":")[3].removesuffix("us")) * 1e-6


def floor_of(row):
    """The least bytes over the rate, and the latency of a push and a pull."""
    return row["bytes_floor"] / rate_of(row) + 2 * latency_of(row)


def values_of(row):
    """The floor if indices took nothing."""
    n, size = row["ranks"], 4 * row["row"]
    return (n - 1) / n * size * (row["nnz_in_mean"] + row["nnz_out"]) / rate_of(row) + 2 * latency_of(row)


def dense_of(row):
    """Floats reduced by the best algorithm there is: 2 (n - 1) / n of the vector, and 2 log2 n latencies."""
    n, size = row["ranks"], 4 * row["count"] * row["row"]
    return 2 * (n - 1) / n * size / rate_of(row) + 2 * math.ceil(math.log2(n)) * latency_of(row)
