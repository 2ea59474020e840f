# SPDX-License-Identifier: BSD-3-Clause
"""Agreement on arguments, so that an error on one rank is an exception on all. Blocks; _compare.py has the
comparison for calls that do not."""

from __future__ import annotations

import zlib
from typing import Any

from .. import _mpi
from ._nonblocking import gather_bytes, gather_numbers


def refuse(problem: str) -> None:
    """Raise ValueError with a problem, unless it is empty."""
    if problem:
        raise ValueError(problem)


def agree(what: str, here: str, problem: str, comm: Any, number: int = 0) -> list[int]:
    """Check that all ranks have the same arguments. Collective; blocks.

    Args:
        what: the word, in the error, for what must be equal on all ranks.
        here: its description; longer ones may have any length.
        problem: the error in this rank's arguments; empty if there is none.
        number: a number that may differ between ranks.

    Returns:
        The number of each rank.

    Raises:
        ValueError: a rank has other arguments or a problem. On all ranks; the text names both sides, or the
            problem and its rank.
    """
    checksum = -1 if problem else zlib.crc32(here.encode())
    found = gather_numbers([checksum, number], comm)
    checksums = [each for each, _ in found]
    if min(checksums) < 0 or min(checksums) != max(checksums):
        _raise_difference(what, problem or here, checksums, comm)
    return [each for _, each in found]


def _raise_difference(what: str, here: str, checksums: list[int], comm: Any) -> None:
    text = here.encode()
    lengths = [each for each, in gather_numbers([len(text)], comm)]
    texts = [each.decode() for each in gather_bytes(text, lengths, comm)]
    wrong = [rank for rank, checksum in enumerate(checksums) if checksum < 0]
    if _mpi.rank(comm) in wrong:
        raise ValueError(here)
    if wrong:
        raise ValueError(f"rank {wrong[0]} has an error in its arguments: {texts[wrong[0]]}")
    other = next(rank for rank, checksum in enumerate(checksums) if checksum != checksums[0])
    raise ValueError(f"{what} differ between ranks: {texts[0]} on rank 0, and {texts[other]} on rank {other}")
