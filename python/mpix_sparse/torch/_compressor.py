# SPDX-License-Identifier: BSD-3-Clause
"""What all ways to compress gradients have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

STATE = "mpix_sparse"  # in an optimizer's state_dict(): by parameter, what a rank keeps of its gradients


@dataclass(frozen=True)
class Compressor:
    """What floats of 32 or 64 bits are rounded to on their way; dtype is None where they are not."""

    wire_values: str
    dtype: torch.dtype | None

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor as it travels by itself."""
        narrow = self.dtype is not None and tensor.dtype in (torch.float32, torch.float64)
        return tensor.to(self.dtype) if narrow else tensor

    def refuse(self, group: dict[str, Any]) -> None:
        """Raise ValueError for a group of an optimizer whose options do not go with this."""

    def sparsifier(self, parameter: torch.nn.Parameter, number: int) -> Any:
        """What selects the elements of a parameter's dense gradients that travel; None for all of them."""
        return None


def refuse_compression(compression: Any) -> None:
    """Raise TypeError for what is no way to compress, such as one that lacks its arguments."""
    if not isinstance(compression, Compressor):
        raise TypeError(
            f"compression is {compression!r}; it must be Compression.none, bf16, fp16 or dgc(...)"
        )
