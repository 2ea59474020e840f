# SPDX-License-Identifier: BSD-3-Clause
"""Hints of communicators: the settings of mpix_sparse(7)."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _mpi, _types
from ._library import library


def set_info(comm: Any = None, **hints: Any) -> None:
    """Set hints for later calls and plans on a communicator. Collective; waits for calls in flight there.

    Args:
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        hints: scheme="balanced", wire_values="bf16", explain=True, and so on, the same on all ranks; see
            mpix_sparse(7). Unknown names are ignored. The hint stream may differ between ranks: the address
            of the CUDA stream that calls on device memory are ordered against, 0 for the default stream.

    Raises:
        Error: a value is wrong, or differs between ranks. No hint has changed then.
    """
    handle = _mpi.communicator(comm)
    with _mpi.Info(hints) as info:
        _mpi.check(library.MPIX_Sparse_comm_set_info(handle, info))


def get_info(comm: Any = None) -> dict[str, str]:
    """Get the values of all settings of a communicator. Not collective.

    Returns:
        Names of settings, without mpix_sparse_, and values; empty before the first call on the communicator.
    """
    handle, info = _mpi.communicator(comm), _mpi.Handle()
    _mpi.check(library.MPIX_Sparse_comm_get_info(handle, ctypes.byref(info)))
    found = {key.replace("mpix_sparse_", "", 1): value for key, value in _mpi.info_items(info)}
    library.MPI_Info_free(ctypes.byref(info))
    return found


def require(name: str, comm: Any) -> None:
    """Raise TypeError for a 16-bit float type unless the communicator's hint `element` names the type."""
    for hint, value in _types.hints(name).items():
        if get_info(comm).get(hint) != value:
            raise TypeError(f"{name} needs a hint on the communicator: set_info(comm, {hint}={value!r})")
