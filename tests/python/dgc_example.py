# SPDX-License-Identifier: BSD-3-Clause
"""Test that examples/dgc runs, learns, sends less, by default ends within 2 % of dense gradients, and prints
the columns of doc/dgc.md."""

import contextlib
import io
import os
import re
import sys

from common import need

need("torch", "python3-torch")
# Force a scheme: automatic selection, and so the number of bytes, varies on a busy machine.
os.environ["MPIX_SPARSE_SCHEME"] = "balanced"
os.environ["MPIX_SPARSE_WIRE"] = "coo"
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(TOP, "examples/dgc"))

import train  # noqa: E402

import mpix_sparse  # noqa: E402

HELD = mpix_sparse.size() == 2  # only these runs are long enough to reach dense accuracy
LENGTH = ["--letters", "4", "--steps", "600"] if HELD else ["--steps", "40"]

for wrong in (["--steps", "0"], ["--ratios", "7"], ["--text", "nowhere"], ["--warmup", "-1"]):
    sys.argv[1:] = wrong
    try:
        with contextlib.redirect_stderr(io.StringIO()) as complaint:
            train.main()
        raise AssertionError(f"{wrong} is taken")
    except SystemExit:
        assert wrong[1] in complaint.getvalue(), complaint.getvalue()

sys.argv[1:] = [*LENGTH, "--width", "96"]
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    train.main()
if mpix_sparse.rank() == 0:
    lines = printed.getvalue().splitlines()
    rows = [re.split("  +", line) for line in lines if line.startswith(("gradients", "whole", "DGC"))]
    with open(os.path.join(TOP, "doc/dgc.md"), encoding="utf-8") as document:
        tables = [line[2:-3].split(" | ") for line in document if line.startswith("| gradients | ")]
    assert tables and all(columns == rows[0] for columns in tables), printed.getvalue()
    assert all(re.fullmatch("[+-]\\d+\\.\\d\\d %", row[2]) for row in rows[1:]), printed.getvalue()
    del rows[0]
    losses, bytes_sent = ([float(row[i].replace(",", "")) for row in rows] for i in (1, 3))
    assert len(rows) == 3 and max(losses) < (1.02 * losses[0] if HELD else 2.29), printed.getvalue()
    assert (
        mpix_sparse.size() == 1 or bytes_sent[0] > 4 * bytes_sent[1] > 12 * bytes_sent[2]
    ), printed.getvalue()
