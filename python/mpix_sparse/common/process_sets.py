# SPDX-License-Identifier: BSD-3-Clause
"""The names of horovod.common.process_sets."""

from ..torch import (  # noqa: F401
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
