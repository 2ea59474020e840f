# SPDX-License-Identifier: BSD-3-Clause
"""Averages are sums for the C library. A label tells their calls apart, which ranks compare together with the
arguments of the call."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from .. import _mpi
from .._library import library

_NAMES = "Sum", "Average", "Adasum"
_NUMBERS = {name: ctypes.c_int(i) for i, name in enumerate(_NAMES)}
_DIFFERENCE = re.compile(r"the label of the call differs between ranks: (\d) on (.*) and (\d) on ")


def label_call(comm: Any, name: str) -> None:
    """Label the next call on a communicator as one of _NAMES."""
    _mpi.check(library.MPIX_Sparse_comm_set_label(comm, _NUMBERS[name]))


def explain_label(text: str) -> str:
    """The text of an error, with ops in place of labels."""

    def name_ops(found: re.Match[str]) -> str:
        one, rank, other = found.groups()
        return f"argument op differs between ranks: {_NAMES[int(one)]} on {rank} and {_NAMES[int(other)]} on "

    return _DIFFERENCE.sub(name_ops, text)
