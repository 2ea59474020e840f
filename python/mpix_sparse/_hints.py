# SPDX-License-Identifier: BSD-3-Clause
"""Hints of communicators: the knobs of mpix_sparse(7)."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _mpi, _types
from ._library import library


def set_info(comm: Any = None, **hints: Any) -> None:
    """Set hints for calls and plans to come on a communicator. Collective; waits for calls in flight there.

    Args:
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        hints: the same on all ranks: scheme="balanced", wire_values="bf16", explain=True, and so on; see
            mpix_sparse(7). Names that are no knobs are ignored. Also stream, each rank's own: the address of
            the stream of CUDA that calls on device memory are ordered against; 0 for the default stream.

    Raises:
        Error: a value is wrong, or differs between ranks; then all hints are as they were.
    """
    handle = _mpi.communicator(comm)
    with _mpi.Info(hints) as info:
        _mpi.check(library.MPIX_Sparse_comm_set_info(handle, info))


def get_info(comm: Any = None) -> dict[str, str]:
    """The values of all knobs that hold for a communicator. Not collective.

    Returns:
        The knobs' names, without mpix_sparse_, and values; empty if the library has not been used there.
    """
    handle, info = _mpi.communicator(comm), _mpi.Handle()
    _mpi.check(library.MPIX_Sparse_comm_get_info(handle, ctypes.byref(info)))
    found = {key.replace("mpix_sparse_", "", 1): value for key, value in _mpi.info_items(info)}
    library.MPI_Info_free(ctypes.byref(info))
    return found


def require(name: str, comm: Any) -> None:
    """Raise TypeError for floats of 16 bits on a communicator where integers of 16 bits stand for something
    else."""
    for hint, value in _types.hints(name).items():
        if get_info(comm).get(hint) != value:
            raise TypeError(f"{name} needs a hint on the communicator: set_info(comm, {hint}={value!r})")
