# SPDX-License-Identifier: BSD-3-Clause
"""Detects launchers that start several processes of which MPI does not know. Each process would be a job of
one rank, without an error."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Sequence

from ._error import Error
from ._library import address, library, mpi_version, other_build

_STEP_MAX = 4_000_000_000  # larger numbers of Slurm's steps stand for batch scripts and shells
# Launchers of MPIs, and their variables with the number of processes.
_MPI_LAUNCHERS = (
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE"),
    ("the mpiexec of MPICH or of a derivative", "PMI_SIZE"),
    ("the mpirun_rsh of MVAPICH", "MV2_COMM_WORLD_SIZE"),
    ("jsrun", "JSM_NAMESPACE_SIZE"),
    ("flux run", "FLUX_JOB_SIZE"),
)


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


class _Launch(NamedTuple):
    """A launcher that the environment names.

    Attributes:
        name: the launcher.
        variable: the variable that tells it.
        count: the number of processes; 0 if there was no such launcher.
    """

    name: str
    variable: str
    count: int


def _launches(open_mpi: bool) -> list[_Launch]:
    """The launchers that have a variable for the number of processes."""
    torchrun = "torchrun" if "TORCHELASTIC_RUN_ID" in os.environ else "a launcher"
    found = [
        _Launch(torchrun, "WORLD_SIZE", _number("WORLD_SIZE")),
        _Launch("horovodrun", "HOROVOD_SIZE", _number("HOROVOD_SIZE")),
    ]
    if _is_own(open_mpi):
        return found
    found += [_Launch(name, variable, _number(variable)) for name, variable in _MPI_LAUNCHERS]
    return [*found, _Launch("srun", "SLURM_STEP_ID", _slurm_tasks())]


def _is_own(open_mpi: bool) -> bool:
    """True if the MPI's own launcher has started one process, perhaps below another launcher."""
    return _number("OMPI_COMM_WORLD_SIZE" if open_mpi else "PMI_SIZE") == 1


def _is_pmix_foreign(launches: Sequence[_Launch], open_mpi: bool) -> bool:
    """True if a launcher with PMIx, which has no variable with the number of processes, has started several;
    or an unknown number, and MPI cannot ask it."""
    rank = os.environ.get("PMIX_RANK", "")
    if not rank.isdecimal() or _is_own(open_mpi):
        return False
    can_ask = open_mpi or address(library, "PMIx_Init") is not None
    return int(rank) > 0 or not (can_ask or any(each.count == 1 for each in launches))


def refuse_other_launcher(size: int, open_mpi: bool) -> None:
    """Raise Error if MPI has one rank and a launcher has started several processes. Not collective.

    Args:
        size: the number of ranks of MPI_COMM_WORLD.
        open_mpi: True if the library is built for Open MPI.
    """
    if size > 1:
        return
    launches = _launches(open_mpi)
    for name, variable, count in launches:
        if count > 1:
            _refuse(f"{name} (it sets {variable}) has started {count} processes", count, variable, open_mpi)
    if _is_pmix_foreign(launches, open_mpi):
        started = "a launcher with PMIx (it sets PMIX_RANK) has started this process"
        _refuse(started, "<number of ranks>", "PMIX_RANK", open_mpi)


def _refuse(started: str, count: Any, variable: str, open_mpi: bool) -> NoReturn:
    """Raise Error with the right launcher and its number of ranks."""
    option = ", or give srun the option --mpi that this MPI needs" if variable.startswith("SLURM") else ""
    raise Error(
        f"{started}, and each process is an MPI job of one rank, since libmpix_sparse uses "
        f"{mpi_version(library)}; start the program with {_own_launcher(open_mpi)} -n {count}{option}, or "
        f"unset {variable} to run independent jobs{other_build()}"
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
