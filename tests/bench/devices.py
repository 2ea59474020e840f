# SPDX-License-Identifier: BSD-3-Clause
"""Lines of the tables of doc/gpu.md, and sentences on devices and on a node of 16 cores, for
tests/bench/evaluation.py."""

from evaluation.figures import floor_of, rows_of
from sentences import real, row_of, span, time_of

MPS = "two processes share the device by MPS"
SLICES = "two processes share the device by time slices"
LEAST = 16384  # the default of MPIX_SPARSE_CUDA_LEAST
NEVER = 4000000000
CASES = [
    ("dense buffers, 10⁵, 1 %", "dense", 100000, 1, 0.01),
    ("dense buffers, 10⁶, 1 %", "dense", 1000000, 1, 0.01),
    ("dense buffers, 1.6·10⁷, .1 %", "dense", 16000000, 1, 0.001),
    ("dense buffers, 1.6·10⁷, 1 %", "dense", 16000000, 1, 0.01),
    ("dense buffers, 1.6·10⁷, 5 %", "dense", 16000000, 1, 0.05),
    ("dense buffers, 1.6·10⁷, 20 %", "dense", 16000000, 1, 0.2),
    ("dense buffers, 6.4·10⁷, 1 %", "dense", 64000000, 1, 0.01),
    ("coordinates, 6.4·10⁷, 1 %", "coo", 64000000, 1, 0.01),
    ("10⁶ rows of 64, 1 %", "coo", 1000000, 64, 0.01),
]
MESSAGES = [(20000, 0.01), (320000, 0.01), (5120000, 0.01), (20480000, 0.01), (81920000, 0.01)]
MESSAGES += [(20480000, 0.05), (20480000, 0.2)]
KERNELS = ["mark", "scan", "scan and partition", "CUB select and sort", "torch.nonzero", "reduce", "scatter"]


def call(label, case, scheme, least=LEAST, aware=False):
    """Seconds of a call, or None where it was not measured."""
    interface, count, row, density = case
    wanted = dict(label=label, interface=interface, count=count, row=row, density=density, scheme=scheme)
    wanted |= dict(cuda_least=least, cuda_aware=aware)
    found = [r for r in rows_of("device-calls") if all(r[key] == value for key, value in wanted.items())]
    return found[0]["median_s"] if found else None


def digits(number):
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def cell(number, unit=1e3):
    return "-" if number is None else digits(number * unit)


def of_calls():
    for name, *case in CASES:
        ours, dense = call(MPS, case, "auto"), call(MPS, case, "dense")
        gain = None if dense is None else dense / ours
        others = [call(MPS, case, "balanced"), call(SLICES, case, "auto")]
        cells = [cell(ours), cell(dense), cell(gain, 1), *map(cell, others)]
        yield f"| {name} | {' | '.join(cells)} |"


def of_least():
    for count, density in MESSAGES:
        case = "dense", count, 1, density
        device, host = (call(MPS, case, "balanced", least) for least in (0, NEVER))
        yield f"| {count * density / 2:.0f} | {cell(device)} | {cell(host)} | {real(device / host)} |"


def kernel(density, name):
    """Milliseconds of a kernel."""
    rows = [r for r in rows_of("device-kernels") if r["density"] == density and r["kernel"] == name]
    return 1e3 * rows[0]["median_s"]


def hashing(density, hashes, memory):
    """A row of Algorithm 1."""
    wanted = dict(kernel="algorithm 1", density=density, hashes=hashes, memory=memory)
    rows = [r for r in rows_of("device-kernels") if all(r.get(key) == v for key, v in wanted.items())]
    return rows[0]


def of_kernels():
    for name in KERNELS:
        cells = " | ".join(f"{kernel(density, name):.3f}" for density in (0.01, 0.02, 0.05))
        yield f"| {name} | {cells} |"
    for memory in (1, 1.5, 2, 3, 4):
        found = [hashing(density, 3, memory) for density in (0.01, 0.02, 0.05)]
        cells = " | ".join(f"{1e3 * row['median_s']:.3f}" for row in found)
        yield f"| Algorithm 1, three hashes, memory of {memory:g} times the elements | {cells} |"
    for hashes in (1, 2, 4):
        cells = " | ".join(f"{1e3 * hashing(d, hashes, 2)['median_s']:.3f}" for d in (0.01, 0.02, 0.05))
        yield f"| Algorithm 1, {hashes} hash{'es' * (hashes > 1)}, memory of 2 times the elements | {cells} |"


def of_cores():
    """Calls whose costs were measured on 16 cores, over those with extrapolated costs."""
    ratios, floors = {}, []
    for model in ("llama", "deepfm", "nmt", "lstm"):
        seconds = time_of(f"cores16-{model}-100-16")
        ratios[model] = seconds / time_of(f"threads-16-{model}-100-16")
        floors.append(seconds / floor_of(row_of(f"cores16-{model}-100-16")))
    words = [f"{real(ratios[model])} ({model})" for model in ratios]
    yield f"take {', '.join(words[:-1])} and {words[-1]} times as long as in the table"
    yield f"and {span(floors)} times the floor"
    gains = [
        row["serial_median_s"] / row["median_s"]
        for row in rows_of("node16-threads")
        if row["density"] == 0.1 and row["threads"] == 16 and row["work"] not in ("encode", "decode")
    ]
    yield f"{span(gains, 1)} times for a vector of 4.2 million elements, 10 % present"


PARTS = [of_cores, of_calls, of_least, of_kernels]
