# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of horovod.common.exceptions."""

from ..torch.elastic import (  # noqa: F401
    HorovodInternalError,
    HostsUpdatedInterrupt,
)
