# SPDX-License-Identifier: BSD-3-Clause
"""Duplicates of a communicator, so that the calls of a package do not match calls that the program makes."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _counts, _hints, _mpi, _types
from ._library import library

HALVES = "float16", "bfloat16"


def duplicate(comm: Any, label: str, **hints: str) -> Any:
    """A duplicate of a communicator, with hints. Collective over comm. The label is that of register() in
    _counts.py."""
    made = _mpi.Handle()
    _mpi.check(library.MPI_Comm_dup(comm, ctypes.byref(made)))
    _counts.register(made, label)
    if hints:
        _hints.set_info(made, **hints)
    return made


class Duplicates:
    """Duplicates of a communicator: one for each meaning of 16-bit elements. Creation is collective.

    Args:
        handle: the communicator.
        label: see duplicate().
        hints: hints of all duplicates.

    Attributes:
        plain: for elements that are no 16-bit floats.
        of_type: for 16-bit floats, by the name of the type.
        rank, size: of this process, and of the communicator.
    """

    def __init__(self, handle: Any, label: str = "", **hints: str) -> None:
        _mpi.note_first_call(handle)
        self.plain = duplicate(handle, label, element="integer", **hints)
        self.of_type = {name: duplicate(handle, label, **_types.hints(name), **hints) for name in HALVES}
        self.rank, self.size = _mpi.rank(handle), _mpi.size(handle)

    def comm(self, name: str) -> Any:
        """The communicator for elements of a type."""
        return self.of_type.get(name, self.plain)

    def all(self) -> list[Any]:
        """All duplicates."""
        return [self.plain, *self.of_type.values()]

    def free(self) -> None:
        """Free the communicators. Collective."""
        for comm in self.all():
            _counts.unregister(comm)
            _mpi.check(library.MPI_Comm_free(ctypes.byref(comm)))
