# SPDX-License-Identifier: BSD-3-Clause
"""How gradients travel."""

from __future__ import annotations

import torch

from ._compressor import Compressor
from ._dgc import Dgc

__all__ = ["Compression", "Compressor"]


class Compression:
    """The ways: all elements as they are (none) or as 16 bits (bf16, fp16), or the largest ones (dgc). A
    DistributedOptimizer adds in 32 bits all the same."""

    none = Compressor("full", None)
    bf16 = Compressor("bf16", torch.bfloat16)
    fp16 = Compressor("fp16", torch.float16)
    dgc = Dgc
