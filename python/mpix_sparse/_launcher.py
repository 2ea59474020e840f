# SPDX-License-Identifier: BSD-3-Clause
"""Detects launchers that start several processes of which MPI does not know. Each process would be a job of
one rank, without an error."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Iterator

from ._error import Error
from ._library import address, library, mpi_version, other_build

_STEP_MAX = 4_000_000_000  # larger numbers of Slurm's steps stand for batch scripts and shells


def _number(name: str) -> int:
    """The value of an environment variable; 0 if it is unset or no number."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0


def _slurm_tasks() -> int:
    """The number of tasks of a step that srun has started. A batch script is no such step, though it has
    SLURM_NTASKS."""
    if not os.environ.get("SLURM_STEP_ID", "").isdecimal() or _number("SLURM_STEP_ID") > _STEP_MAX:
        return 0
    return _number("SLURM_STEP_NUM_TASKS") or _number("SLURM_NTASKS")


def _launches(open_mpi: bool) -> Iterator[tuple[str, int, str]]:
    """Launchers that the environment names: name, number of processes, the variable that tells it."""
    torchrun = "torchrun" if "TORCHELASTIC_RUN_ID" in os.environ else "a launcher"
    yield torchrun, _number("WORLD_SIZE"), "WORLD_SIZE"
    yield "horovodrun", _number("HOROVOD_SIZE"), "HOROVOD_SIZE"
    if _number("OMPI_COMM_WORLD_SIZE" if open_mpi else "PMI_SIZE") == 1:
        return  # the MPI's own launcher has started one process, perhaps below another launcher
    yield "Open MPI's mpirun", _number("OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE"
    yield "the mpiexec of MPICH or of a derivative", _number("PMI_SIZE"), "PMI_SIZE"
    yield "srun", _slurm_tasks(), "SLURM_STEP_ID"
    # PMIx has no variable with the number of processes.
    yield "a launcher with PMIx", _number("PMIX_RANK") + 1, "PMIX_RANK"


def refuse_other_launcher(size: int, open_mpi: bool) -> None:
    """Raise Error if MPI has one rank and a launcher has started several processes. Not collective.

    Args:
        size: the number of ranks of MPI_COMM_WORLD.
        open_mpi: True if the library is built for Open MPI.
    """
    if size > 1:
        return
    for name, count, variable in _launches(open_mpi):
        if count > 1:
            several = f"{count} processes" if variable != "PMIX_RANK" else "several processes"
            raise Error(
                f"{name} (it sets {variable}) has started {several}, and each is an MPI job of one rank, "
                f"since libmpix_sparse uses {mpi_version(library)}; start the program with "
                f"{_own_launcher(open_mpi)} -n {count}, or unset {variable} to run independent jobs"
                f"{other_build()}"
            )


class _Symbol(ctypes.Structure):
    """Dl_info of dladdr()."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def _own_launcher(open_mpi: bool) -> str:
    """The mpiexec beside the MPI that the library uses: its path, or words if it is not found."""
    suffixes = [".openmpi", ""] if open_mpi else [".mpich", ".hydra", ""]
    for folder in _mpi_folders():
        for suffix in suffixes:
            path = folder / "bin" / f"mpiexec{suffix}"
            if os.access(path, os.X_OK):
                return str(path)
    return "the mpiexec of that MPI"


def _mpi_folders() -> list[Path]:
    """The folders above the MPI library's file, the innermost first."""
    symbol, found = _Symbol(), address(library, "PMPI_Init")
    dladdr = ctypes.CDLL(None).dladdr
    if not dladdr(ctypes.c_void_p(found), ctypes.byref(symbol)) or not symbol.file:
        return []
    return list(Path(os.fsdecode(symbol.file)).resolve().parents)
