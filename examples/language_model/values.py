# SPDX-License-Identifier: BSD-3-Clause
"""Values of options on the command line."""

from __future__ import annotations

import argparse
import os

PICTURES = ".svg", ".pdf", ".png"


def natural(text: str) -> int:
    """A whole number, 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    if natural(text) == 0:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return int(text)


def share(text: str) -> float:
    """A number above 0 and at most 1."""
    if not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return float(text)


def readable(path: str) -> str:
    """A file that is readable and not empty."""
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise argparse.ArgumentTypeError(f"{path} is no file that can be read")
    if os.path.getsize(path) == 0:
        raise argparse.ArgumentTypeError(f"{path} is empty")
    return path


def writable(path: str) -> str:
    """A file in a writable folder."""
    if os.path.isdir(path) or not os.access(os.path.dirname(path) or ".", os.W_OK):
        raise argparse.ArgumentTypeError(f"{path} cannot be written")
    return path


def picture(path: str) -> str:
    """A writable file with the suffix of a picture."""
    if os.path.splitext(path)[1] not in PICTURES:
        raise argparse.ArgumentTypeError(f"{path} ends in none of {', '.join(PICTURES)}")
    return writable(path)
