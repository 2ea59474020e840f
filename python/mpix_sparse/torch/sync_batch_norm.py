# SPDX-License-Identifier: BSD-3-Clause
"""The name of horovod.torch.sync_batch_norm."""

from ._sync_batch_norm import (  # noqa: F401
    SyncBatchNorm,
)
