# SPDX-License-Identifier: BSD-3-Clause
"""Horovod's questions about how it was built. Here there is only MPI."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from .. import _mpi
from .._library import library
from ._world import world

CUDA_PLUGIN = "libmpix_sparse_cuda.so"


def mpi_built() -> bool:
    """True: this package is for MPI."""
    return True


def mpi_enabled() -> bool:
    """True: all communication goes through MPI."""
    return True


def mpi_threads_supported() -> bool:
    """True if MPI was initialised with MPI_THREAD_MULTIPLE.

    Raises:
        ValueError: init() has not been called.
    """
    world()
    return _mpi.allows_threads()


def gloo_built() -> bool:
    """False: Gloo is not used."""
    return False


def gloo_enabled() -> bool:
    """False: Gloo is not used."""
    return False


def nccl_built() -> int:
    """0: NCCL is not used."""
    return 0


def ddl_built() -> bool:
    """False: DDL is not used."""
    return False


def ccl_built() -> bool:
    """False: oneCCL is not used."""
    return False


@functools.lru_cache(maxsize=None)
def cuda_built() -> bool:
    """True if the C library's plug-in for CUDA is installed and can be loaded. Reductions of tensors run in
    host memory in either case."""
    beside = os.path.join(os.path.dirname(library._name), CUDA_PLUGIN)
    for path in (beside, CUDA_PLUGIN):
        try:
            ctypes.CDLL(path)
            return True
        except OSError:
            pass
    return False


def rocm_built() -> bool:
    """False: ROCm is not used."""
    return False


def _refuse_timeline() -> None:
    raise NotImplementedError(
        "a timeline cannot be started or stopped while the program runs; "
        "set the environment variable MPIX_SPARSE_TRACE=FILE before the program starts"
    )


def start_timeline(file_path: Any, mark_cycles: bool = False) -> None:
    """Not supported: the C library writes a timeline if the environment has MPIX_SPARSE_TRACE=FILE.

    Raises:
        NotImplementedError: always.
    """
    _refuse_timeline()


def stop_timeline() -> None:
    """Not supported; see start_timeline().

    Raises:
        NotImplementedError: always.
    """
    _refuse_timeline()
