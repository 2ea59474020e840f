# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of arguments between ranks, so that an error on one rank is an exception on all."""

from __future__ import annotations

import zlib
from typing import Any

from ._collectives import gather_numbers


def agree(here: str, there: str, problem: str, comm: Any, number: int = 0) -> list[int]:
    """Check that all ranks have the same arguments. Collective; blocks.

    Args:
        here: a description of what must be equal on all ranks.
        there: the word for what other ranks have if it is not equal.
        problem: the error in this rank's arguments; empty if there is none.
        number: a number that may differ between ranks.

    Returns:
        The number of each rank.

    Raises:
        ValueError: a rank has other arguments or a problem; on all ranks.
    """
    checksum = -1 if problem else zlib.crc32(here.encode())
    found = gather_numbers([checksum, number], comm)
    if problem:
        raise ValueError(problem)
    for rank, (theirs, _) in enumerate(found):
        if theirs < 0:
            raise ValueError(f"rank {rank} has an error in its arguments")
        if theirs != checksum:
            raise ValueError(f"{here}, and {there} on rank {rank}")
    return [each for _, each in found]
