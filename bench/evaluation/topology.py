# SPDX-License-Identifier: BSD-3-Clause
"""The page on the paper's cluster, 16 machines of 8 GPUs: its measurements and parts, for bench/evaluate."""

from evaluation.figures import dense_of, number, rows_of, table

MACHINES, GPUS, RATE = 16, 8, 25
EMBEDDINGS = {"lstm": 256, "deepfm": 256, "nmt": 128}  # data-parallel over all GPUs; and their scales
ROWS_SCALE = {"lstm": 64, "deepfm": 256, "nmt": 64}  # 368 rows or more: of fewer, quantiles are unknown
BUCKET_SCALE = 32  # of llama, which stands for the LLMs, whose buckets are equal
# As the paper sends: a hash of each index, coordinates in the push, hash bitmaps in the pull.
PAPERS = ["-S", "balanced", "-W", "coo/hash_bitmap", "-P", "hash", "-g", "1"]
CHOSEN = ["-S", "balanced,auto,recursive_doubling,omni"]
COORDINATES = ["-S", "recursive_doubling,sparse_ps,allgather", "-W", "coo"]
IN_ROWS = ["-S", "balanced,recursive_doubling,omni", "-P", "auto,range"]  # omni: cyclic, and contiguous
WIDTHS = {"lstm": 512, "deepfm": 16, "nmt": 512}
WAYS = {"paper": PAPERS, "chosen": CHOSEN, "coo": COORDINATES}
# Bytes a second that a GPU sends in a ring within a machine: rings of NCCL reach about 130 GB/s over the six
# NVLinks of a V100, and PCIe of the third generation has about 12.
WITHIN = {"NVLink": 130e9, "PCIe": 12e9}
# Reported by the paper: communication time of dense over that of Zen.
REPORTED = {"lstm": 6.77, "deepfm": 2.10, "opt": 3.44, "gemma": 3.51}


def measurements():
    timed = "-n 1 -w 1 --check 0 --alone".split()
    for model, scale in EMBEDDINGS.items():
        command = f"bench/simulate -n {MACHINES} -r {RATE} -s {{}} -- --workload {model} --gpus {GPUS}"
        for way, options in WAYS.items():
            yield f"topology-{model}-{way}", command.format(scale).split() + timed + options
        rows = ["-R", str(WIDTHS[model])] + timed + IN_ROWS
        yield f"topology-{model}-rows", command.format(ROWS_SCALE[model]).split() + rows
    # Eight calls, one of each shard, share a machine's link.
    command = f"bench/simulate -n {MACHINES} -r {RATE / GPUS} -s {BUCKET_SCALE} -- --workload llama"
    for way, options in WAYS.items():
        yield f"topology-llama-{way}", command.split() + timed + options


def row_of(model, way, scheme="balanced", partition=None):
    """The row of a scheme, in `rows` also of a partition, or None."""
    for row in rows_of(f"topology-{model}-{way}"):
        if row["scheme"] == scheme and partition in (None, row["partition_requested"]):
            return row
    return None


def within_of(row, rate):
    """Seconds of dense rings within a machine: the reduction before, and the broadcast after."""
    if row["gpus"] == 1:  # tensor-parallel: no two GPUs of a machine have the same tensor
        return 0
    return 2 * (GPUS - 1) / GPUS * 4 * row["count"] * row["row"] * row["scale"] / rate


def gains_of(row):
    """How many times as fast as dense: messages between machines alone, and with what is within a machine."""
    dense, time = dense_of(row), row["median_s"]
    return [(dense + w) / (time + w) for w in [0, *(within_of(row, rate) for rate in WITHIN.values())]]


def needed_of(row, gain, rate=None):
    """The density of the result with which the paper's formats would gain so much: coordinates of 8 bytes in
    the push, a bit a slot and 4 bytes an element in the pull."""
    dense = dense_of(row)
    within = within_of(row, rate) if rate else 0
    time = (dense + within) / gain - within
    return 2 * time / dense - 1 / 32 - 2 * row["density"]


def cluster_density():
    head = ["workload", "a GPU", "a machine of 8", "all 16 machines"]
    lines = []
    for model in EMBEDDINGS:
        row, alone = row_of(model, "paper"), rows_of(f"speedup-{model}")
        if row and alone:
            shares = [alone[0]["density"], row["density"], row["nnz_out"] / row["count"]]
            lines.append([model] + [number(100 * share, 1) + " %" for share in shares])
    return table(head, lines)


def cluster_speedup():
    head = ["workload", "scheme and formats", "between machines, ms", "over dense"]
    head += [f"with {w}" for w in WITHIN]
    lines = []
    for model in [*EMBEDDINGS, "llama"]:
        found = [
            ("`balanced`, the paper's formats", row_of(model, "paper")),
            ("`balanced`, the formats chosen", row_of(model, "chosen")),
            ("recursive doubling, coordinates", row_of(model, "coo", "recursive_doubling")),
            ("sparse PS, coordinates", row_of(model, "coo", "sparse_ps")),
            ("AGsparse, coordinates", row_of(model, "coo", "allgather")),
            ("`auto`, the formats chosen", row_of(model, "chosen", "auto")),
            ("recursive doubling, the formats chosen", row_of(model, "chosen", "recursive_doubling")),
            ("`omni`", row_of(model, "chosen", "omni")),
            ("`balanced`, rows", row_of(model, "rows", "balanced", "auto")),
            ("recursive doubling, rows", row_of(model, "rows", "recursive_doubling", "auto")),
            ("`omni`, rows", row_of(model, "rows", "omni", "auto")),
            ("`omni`, rows, contiguous", row_of(model, "rows", "omni", "range")),
        ]
        for words, row in found:
            if row:
                gains = gains_of(row)[: 3 if row["gpus"] > 1 else 1] + [float("nan")] * 2
                cells = [number(gain) for gain in gains[: 1 + len(WITHIN)]]
                lines.append([model, words, number(row["median_s"] * 1e3, 1)] + cells)
        reported = [number(gain) for name, gain in REPORTED.items() if name == model]
        if model == "llama":
            reported = [" and ".join(number(REPORTED[m]) for m in ("opt", "gemma"))]
        if found[0][1]:
            lines.append([model, "Zen, as reported", "-", *(reported or ["-"]), "-", "-"])
    return table(head, lines)


def cluster_needed():
    head = ["workload", "reported", "drawn", "needed, messages alone", *(f"needed, with {w}" for w in WITHIN)]
    lines = []
    for model in ["lstm", "deepfm"]:
        row = row_of(model, "paper")
        if row:
            shares = [row["nnz_out"] / row["count"]]
            shares += [needed_of(row, REPORTED[model], rate) for rate in [None, *WITHIN.values()]]
            cells = [number(100 * share, 1) + " %" if share > 0 else "none" for share in shares]
            lines.append([model, number(REPORTED[model])] + cells)
    return table(head, lines)


PARTS = [cluster_density, cluster_speedup, cluster_needed]
