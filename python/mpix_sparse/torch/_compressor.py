# SPDX-License-Identifier: BSD-3-Clause
"""The interface of all gradient compressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .. import get_info

STATE = "mpix_sparse"  # key in an optimizer's state_dict(): by parameter, states of sparsifiers


@dataclass(frozen=True)
class Compressor:
    """Rounds floats of 32 or 64 bits to dtype for communication; None leaves them unchanged."""

    wire_values: str
    dtype: torch.dtype | None

    def __str__(self) -> str:
        return self.wire_values

    @property
    def hints(self) -> dict[str, str]:
        """The hints of a plan whose values are sent in 16 bits."""
        return {} if self.dtype is None else {"wire_values": self.wire_values}

    def buffer_type(self, dtype: torch.dtype, comm: Any) -> torch.dtype:
        """The type of the buffer of dense gradients. The library sends 32-bit floats as 16 bits, but if the
        scheme dense is set for comm, MPI sends them as they are."""
        rounds = self.dtype is not None and dtype == torch.float32
        return self.dtype if rounds and get_info(comm).get("scheme") == "dense" else dtype

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor to send when it is sent by itself."""
        rounds = self.dtype is not None and tensor.dtype in (torch.float32, torch.float64)
        return tensor.to(self.dtype) if rounds else tensor

    def round(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor with the values of `tensor`, floats of 32 bits rounded to dtype; may be `tensor`."""
        rounds = self.dtype is not None and tensor.dtype == torch.float32
        return tensor.to(self.dtype).to(tensor.dtype) if rounds else tensor

    def round_(self, tensor: torch.Tensor) -> None:
        """Round the values of a tensor in place, as round()."""
        if self.dtype is not None and tensor.dtype == torch.float32:
            tensor.copy_(tensor.to(self.dtype))

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
