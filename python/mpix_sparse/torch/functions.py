# SPDX-License-Identifier: BSD-3-Clause
"""The names of horovod.torch.functions."""

from . import (  # noqa: F401
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
