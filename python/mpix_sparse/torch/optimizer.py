# SPDX-License-Identifier: BSD-3-Clause
"""The name of horovod.torch.optimizer."""

from ._optimizer import (  # noqa: F401
    DistributedOptimizer,
)
