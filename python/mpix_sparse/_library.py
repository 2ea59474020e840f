# SPDX-License-Identifier: BSD-3-Clause
"""Loads the C library, and with it the MPI that it was built with.

MPI's functions and constants come from the C library's handle, where the loader finds the symbols of the
library's dependencies. So no other MPI can be found by name.
"""

from __future__ import annotations

import ctypes
import os
import sys

from ._version import __version__

try:
    from . import _bundled as _BUNDLED  # python/backend writes it
except ImportError:
    _BUNDLED = None

SONAME = "libmpix_sparse.so.0"


def _bundled_path() -> str | None:
    """The path of the library that pip has compiled into this package, or None."""
    if _BUNDLED is None:
        return None
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), _BUNDLED.LIBRARY)


def _candidates() -> list[str]:
    """Paths of the C library to try in order: LIBMPIX_SPARSE alone if set, else the bundled library alone if
    there is one, else the path that `make install` wrote and the loader's search path."""
    named = os.environ.get("LIBMPIX_SPARSE") or _bundled_path()
    if named:
        return [named]
    try:
        from ._installed import LIBRARY
    except ImportError:
        return [SONAME]
    return [LIBRARY, SONAME]


def other_build() -> str:
    """How to build this package for another MPI: the end of a sentence; empty without a bundled library."""
    if _BUNDLED is None or os.environ.get("LIBMPIX_SPARSE"):
        return ""
    return (
        "; to use another MPI, build the package for it: MPICC=<its mpicc> pip install --force-reinstall "
        f"--no-deps --no-cache-dir mpix_sparse-{__version__}.tar.gz, or ./python in place of the file in a "
        "checkout"
    )


def _open() -> ctypes.CDLL:
    reasons = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as reason:
            reasons.append(str(reason))
    if other_build():
        raise ImportError(
            f"the C library in this package is built for {_BUNDLED.MPI} ({_BUNDLED.MPICC}), and cannot be "
            f"loaded ({reasons[0]}){other_build()}"
        )
    raise ImportError(
        f"the C library of mpix_sparse cannot be loaded ({'; '.join(reasons)}); "
        "install it, or set LIBMPIX_SPARSE to its path"
    )


def address(library: ctypes.CDLL, name: str) -> int | None:
    """The address of a symbol in a library or its dependencies, or None."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    except ValueError:
        return None


def _first_line(text: str) -> str:
    return " ".join(text.split("\n")[0].split())


def mpi_version(library: ctypes.CDLL) -> str:
    """The version string of an MPI, its first line."""
    text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
    library.MPI_Get_library_version(text, ctypes.byref(length))
    return _first_line(text.value.decode(errors="replace"))


def _refuse(other: str) -> None:
    raise ImportError(
        f"two MPIs in one process: {other}, and libmpix_sparse is built for {mpi_version(library)}; "
        f"use an mpi4py and a libmpix_sparse that are built for one MPI{other_build()}"
    )


def refuse_foreign_global() -> None:
    """Raise ImportError if the process has loaded another MPI whose symbols come first."""
    everywhere = ctypes.CDLL(None)
    found = address(everywhere, "PMPI_Init")
    if found is not None and found != address(library, "PMPI_Init"):
        _refuse(f"the process has {mpi_version(everywhere)} already")


_accepted_mpi4py = None


def refuse_foreign_mpi4py() -> None:
    """Raise ImportError if mpi4py has been imported and is built for another MPI."""
    global _accepted_mpi4py
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is _accepted_mpi4py:
        return
    theirs = address(ctypes.CDLL(mpi.__file__), "PMPI_Init")
    if theirs is None:
        # This mpi4py is not linked with an MPI but opens one at run time.
        same = _first_line(mpi.Get_library_version()) == mpi_version(library)
    else:
        same = theirs == address(library, "PMPI_Init")
    if not same:
        name, number = mpi.get_vendor()
        _refuse(f"mpi4py is built for {name} {'.'.join(map(str, number))}")
    _accepted_mpi4py = mpi


def version() -> tuple[int, int, int]:
    """The version of the C library: (major, minor, patch)."""
    number = ctypes.c_int()
    library.MPIX_Sparse_get_version(ctypes.byref(number))
    return number.value >> 16, number.value >> 8 & 255, number.value & 255


def _refuse_version() -> None:
    if version()[:2] != tuple(map(int, __version__.split(".")[:2])):
        found = ".".join(map(str, version()))
        raise ImportError(
            f"the C library {library._name} is of version {found}, and this package of {__version__}"
        )


library = _open()
refuse_foreign_global()
refuse_foreign_mpi4py()
_refuse_version()
