# SPDX-License-Identifier: BSD-3-Clause
"""How floats travel."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Compressor:
    """What floats of 32 or 64 bits are rounded to on their way; dtype is None where they are not."""

    wire_values: str
    dtype: torch.dtype | None

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor as it travels by itself."""
        narrow = self.dtype is not None and tensor.dtype in (torch.float32, torch.float64)
        return tensor.to(self.dtype) if narrow else tensor


class Compression:
    """The ways: none, and 16 bits as bf16 or fp16. A DistributedOptimizer adds in 32 bits all the same."""

    none = Compressor("full", None)
    bf16 = Compressor("bf16", torch.bfloat16)
    fp16 = Compressor("fp16", torch.float16)
