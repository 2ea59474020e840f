# SPDX-License-Identifier: BSD-3-Clause
"""The questions of horovod.common.util about how Horovod was built."""

import torch

from ..torch import ccl_built, ddl_built, gloo_built, mpi_built, nccl_built

__all__ = [
    "ccl_built",
    "ddl_built",
    "extension_available",
    "gloo_built",
    "gpu_available",
    "mpi_built",
    "nccl_built",
]


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """True for "torch", the only one of Horovod's packages that is here."""
    return ext_base_name == "torch"


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """True if PyTorch finds a device of CUDA."""
    return extension_available(ext_base_name) and torch.cuda.is_available()
