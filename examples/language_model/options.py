# SPDX-License-Identifier: BSD-3-Clause
"""The command line. What is wrong with it is told before anything is trained."""

from __future__ import annotations

import argparse
from typing import Any, Callable

from communication import WAYS
from values import natural, picture, positive, readable, share, writable


def parse(description: str, arguments: list[str] | None) -> argparse.Namespace:
    """Parse `arguments`, or the command line if None. An invalid option ends the program with an error
    message."""
    parser = make_parser(description)
    options = parser.parse_args(arguments)
    if options.compression == "dgc" and options.communication != "mpix_sparse":
        parser.error("--compression dgc is for --communication mpix_sparse")
    if options.shard_state and (options.communication, options.compression) != ("mpix_sparse", "none"):
        parser.error("--shard-state is for --communication mpix_sparse without compression")
    return options


def make_parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add(
        "--text",
        nargs="+",
        type=readable,
        required=True,
        metavar="FILE",
        help="what to learn from; words divided by spaces",
    )
    add("--communication", choices=WAYS, default="mpix_sparse", help="how gradients are summed [%(default)s]")
    add(
        "--compression",
        choices=["none", "dgc"],
        default="none",
        help="of what mpix_sparse sends [%(default)s]",
    )
    add("--ratio", type=share, default=0.01, help="of the numbers that travel under dgc [%(default)s]")
    add(
        "--shard-state",
        action="store_true",
        help="in turns, another model whose optimizer state of tables is divided among the ranks",
    )
    add("--compare", action="store_true", help="all ways in one run, in turns")
    add(
        "--turn",
        type=positive,
        default=5,
        metavar="STEPS",
        help="of each way before the next one's [%(default)s]",
    )
    add("--steps", type=positive, default=100, help="that the optimizer makes [%(default)s]")
    add(
        "--skip",
        type=natural,
        default=5,
        metavar="STEPS",
        help="at the beginning, not in the table [%(default)s]",
    )
    add("--batch", type=positive, default=32, help="streams of text that a rank reads at once [%(default)s]")
    add("--length", type=positive, default=20, help="words of each stream in a step [%(default)s]")
    add("--width", type=positive, default=512, help="numbers that a word has in each table [%(default)s]")
    add("--hidden", type=positive, default=64, help="numbers in the LSTM's state [%(default)s]")
    add(
        "--vocabulary",
        type=positive,
        help="most words to know; the rest counts as one [all of the text]",
    )
    add("--samples", type=natural, default=0, help="words drawn in a step [1 %% of the vocabulary]")
    add("--rate", type=float, default=0.02, help="Adagrad's learning rate [%(default)s]")
    add("--seed", type=int, default=1, help="of the model and of the words drawn [%(default)s]")
    add("--threads", type=positive, default=1, help="of PyTorch in each rank [%(default)s]")
    add("--quiet", action="store_true", help="no progress bar")
    _add_files(add)
    return parser


def _add_files(add: Callable[..., Any]) -> None:
    add("--json", type=writable, metavar="FILE", help="write measurements as JSON lines")
    add(
        "--plot",
        type=picture,
        metavar="FILE",
        help="draw losses and times, as the name's ending says: .svg, .pdf or .png; needs matplotlib",
    )
