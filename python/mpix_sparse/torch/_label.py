# SPDX-License-Identifier: BSD-3-Clause
"""Averages are sums for the C library. A label tells their calls apart, which ranks compare together with the
arguments of the call."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from .. import _mpi
from .._library import library

_AVERAGE = ctypes.c_int(1)
_NAMES = {"0": "Sum", "1": "Average"}
_DIFFERENCE = re.compile(r"the label of the call differs between ranks: (\d) on (.*) and (\d) on ")


def label_average(comm: Any) -> None:
    """Label the next call on a communicator as an average."""
    _mpi.check(library.MPIX_Sparse_comm_set_label(comm, _AVERAGE))


def explain_label(text: str) -> str:
    """The text of an error, with ops in place of labels."""

    def name_ops(found: re.Match[str]) -> str:
        one, rank, other = found.groups()
        return f"argument op differs between ranks: {_NAMES[one]} on {rank} and {_NAMES[other]} on "

    return _DIFFERENCE.sub(name_ops, text)
