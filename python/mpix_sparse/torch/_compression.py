# SPDX-License-Identifier: BSD-3-Clause
"""The choices of gradient compression."""

from __future__ import annotations

import torch

from ._compressor import Compressor
from ._dgc import Dgc

__all__ = ["Compression", "Compressor"]


class Compression:
    """All elements unchanged (none) or rounded to 16 bits (bf16, fp16), or only the largest elements (dgc). A
    DistributedOptimizer accumulates in 32 bits in each case."""

    none = Compressor("full", None)
    bf16 = Compressor("bf16", torch.bfloat16)
    fp16 = Compressor("fp16", torch.float16)
    dgc = Dgc
