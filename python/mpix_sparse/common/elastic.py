# SPDX-License-Identifier: BSD-3-Clause
"""The states of horovod.common.elastic."""

from ..torch.elastic import (  # noqa: F401
    ObjectState,
    State,
)
