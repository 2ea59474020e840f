# SPDX-License-Identifier: BSD-3-Clause
"""The interface of all gradient compressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

STATE = "mpix_sparse"  # key in an optimizer's state_dict(): by parameter, states of sparsifiers


@dataclass(frozen=True)
class Compressor:
    """Rounds floats of 32 or 64 bits to dtype for communication; None leaves them unchanged."""

    wire_values: str
    dtype: torch.dtype | None

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor to send when it is sent by itself."""
        rounds = self.dtype is not None and tensor.dtype in (torch.float32, torch.float64)
        return tensor.to(self.dtype) if rounds else tensor

    def refuse(self, group: dict[str, Any]) -> None:
        """Raise ValueError if the options of an optimizer's group do not allow this compression."""

    def sparsifier(self, parameter: torch.nn.Parameter, number: int) -> Any:
        """An object that selects the elements of a parameter's dense gradients to send; None for all."""
        return None


def refuse_compression(compression: Any) -> None:
    """Raise TypeError unless compression is a Compressor; a class without its arguments is not."""
    if not isinstance(compression, Compressor):
        raise TypeError(
            f"compression is {compression!r}; it must be Compression.none, bf16, fp16 or dgc(...)"
        )
