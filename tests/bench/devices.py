# SPDX-License-Identifier: BSD-3-Clause
"""Lines of the tables of doc/gpu.md, and sentences on devices and on a node of 16 processors, for
tests/bench/evaluation.py."""

from evaluation.figures import floor_of, rows_of
from sentences import percent, real, row_of, span, time_of

MPS = "two processes share the device by MPS"
SLICES = "two processes share the device by time slices"
MIXED = "device memory on the first rank, host memory on the second"
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
DENSITIES = 0.01, 0.02, 0.05
KERNELS = ["mark", "scan", "scan and partition", "CUB select and sort", "torch.nonzero", "reduce", "scatter"]


def select(name, **wanted):
    """The rows of a result that have these values."""
    return [row for row in rows_of(name) if all(row.get(key) == value for key, value in wanted.items())]


def call(label, case, scheme, least=LEAST, aware=False):
    """Seconds of a call, or None where it was not measured."""
    keys = dict(zip(("interface", "count", "row", "density"), case))
    found = select("device-calls", label=label, scheme=scheme, cuda_least=least, cuda_aware=aware, **keys)
    return found[0]["median_s"] if found else None


def digits(number):
    """Three digits, with zeros at the end."""
    text = f"{number:#.3g}"
    return text.rstrip(".")


def cell(number, unit=1e3):
    return "-" if number is None else digits(number * unit)


def of_calls():
    for name, *case in CASES:
        ours, dense = call(MPS, case, "auto"), call(MPS, case, "dense")
        gain = None if dense is None else dense / ours
        others = [call(MPS, case, "balanced"), call(SLICES, case, "auto")]
        cells = [cell(ours), cell(dense), cell(gain, 1), *map(cell, others)]
        yield f"| {name} | {' | '.join(cells)} |"


def over_host(label, case):
    """Times of a call on the device and on the host, and their ratio."""
    device, host = (call(label, case, "balanced", least) for least in (0, NEVER))
    return device, host, device / host


def of_least():
    for count, density in MESSAGES:
        case = "dense", count, 1, density
        device, host, ratio = over_host(MPS, case)
        cells = [cell(device), cell(host), f"{ratio:.2f}", f"{over_host(MIXED, case)[2]:.2f}"]
        yield f"| {count * density / 2:.0f} | {' | '.join(cells)} |"
    few = [("dense", count, 1, density) for count, density in MESSAGES if density == 0.01]
    slices = [over_host(SLICES, case)[2] for case in few]
    assert min(slices) > 1
    yield f"the host was faster at all sizes, up to {real(max(slices), 1)} times"


def of_settings():
    """Calls with one rank on the device, and with an MPI that takes device memory."""
    shapes = (10**6, 0.01), (16000000, 0.01), (16000000, 0.05)
    cases = [("dense", count, 1, share) for count, share in shapes]
    found = [cell(call(MIXED, case, "auto")) for case in cases]
    yield f"{found[0]} ms (10⁶, 1 %), {found[1]} ms (1.6·10⁷, 1 %) and {found[2]} ms (1.6·10⁷, 5 %)"
    case = cases[1]
    direct, staged = (call(MPS, case, "balanced", aware=aware) for aware in (True, False))
    yield f"By MPS `balanced` takes {cell(direct)} ms with it and {cell(staged)} ms staged"
    direct, staged = (call(MPS, case, "auto", aware=aware) for aware in (True, False))
    yield f"and `auto` {cell(direct)} and {cell(staged)} ms"
    times = [call(SLICES, ("dense", 16000000, 1, 0.001), "dense", aware=aware) for aware in (True, False)]
    yield f"takes {times[0]:.2f} s there, and {real(times[1], 3)} s staged"
    gains = [call(MPS, case, "dense") / call(MPS, case, "auto") for case in (cases[2], cases[1])]
    yield f"5 and 1 % of 16 million floats in device memory | {gains[0]:.0f} and {gains[1]:.0f} times |"


def kernel(density, name):
    """Milliseconds of a kernel."""
    return 1e3 * select("device-kernels", density=density, kernel=name)[0]["median_s"]


def hashing(density, hashes, memory):
    """Milliseconds of Algorithm 1."""
    found = select("device-kernels", kernel="algorithm 1", density=density, hashes=hashes, memory=memory)
    return 1e3 * found[0]["median_s"]


def of_kernels():
    for name in KERNELS:
        cells = " | ".join(f"{kernel(density, name):.3f}" for density in DENSITIES)
        yield f"| {name} | {cells} |"
    for memory in (1, 1.5, 2, 3, 4):
        cells = " | ".join(f"{hashing(density, 3, memory):.3f}" for density in DENSITIES)
        yield f"| Algorithm 1, three hashes, memory of {memory:g} times the elements | {cells} |"
    for hashes in (1, 2, 4):
        cells = " | ".join(f"{hashing(density, hashes, 2):.3f}" for density in DENSITIES)
        yield f"| Algorithm 1, {hashes} hash{'es' * (hashes > 1)}, memory of 2 times the elements | {cells} |"


def of_claims():
    """The rows of the page of claims on Algorithm 1."""
    least = [min((hashing(density, 3, memory), memory) for memory in (2, 3, 4))[1] for density in DENSITIES]
    assert least[0] == least[2]
    yield f"least at {least[1]} \\|G\\| d with 2 %, at {least[0]} \\|G\\| d with 1 and 5 %"
    saved = [1 - hashing(density, 4, 2) / hashing(density, 3, 2) for density in DENSITIES]
    yield "a fourth hash saves {}, {} and {} %".format(*map(percent, saved))
    whole = 4 * 1.6e9 / (4 * 214e6)
    yield f"{real(kernel(0.02, 'torch.nonzero'))} ms over DeepFM's vector on an H200"
    yield f"by bytes {real(whole * kernel(0.02, 'torch.nonzero'), 1)} ms for 6.4 GB"


def gains_at(density):
    """Times on one thread over those on 16, of all work but that within one message."""
    rows = select("node16-threads", density=density, threads=16)
    return [r["serial_median_s"] / r["median_s"] for r in rows if r["work"] not in ("encode", "decode")]


def of_cores():
    """Calls with ratios of costs that were measured on 16 processors, over those with extrapolated costs."""
    ratios, floors = {}, []
    for model in ("llama", "deepfm", "nmt", "lstm"):
        seconds = time_of(f"cores16-{model}-100-16")
        ratios[model] = seconds / time_of(f"threads-16-{model}-100-16")
        floors.append(seconds / floor_of(row_of(f"cores16-{model}-100-16")))
    words = [f"{real(ratios[model])} ({model})" for model in ratios]
    yield f"take {', '.join(words[:-1])} and {words[-1]} times as long as in the table"
    yield f"and {span(floors)} times the floor"
    yield f"{span(gains_at(0.1), 1)} times for a vector of 4.2 million elements, 10 % present"
    yield f"At 1 % they are {span(gains_at(0.01), 1)}"
    work = [row_of(f"{family}-lstm-100-16")["charged_s"] * 1e3 for family in ("threads-16", "cores16")]
    yield f"The work of lstm is {real(work[1], 1)} ms in place of {real(work[0], 1)}"


PARTS = [of_cores, of_calls, of_least, of_settings, of_kernels, of_claims]
