# SPDX-License-Identifier: BSD-3-Clause
"""Hints of communicators: the settings of mpix_sparse_environment(7).

The C library passes small dense calls to MPI without a check that arguments are equal on all ranks. From
Python all calls are checked: the first collective call on a communicator sets its hint `forward` to 0, unless
the user has set that."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import os
from typing import Any, Iterable, Mapping

from . import _counts, _mpi, _problems, _types
from ._collective import collective
from ._library import address, library

FORWARD = "forward"
_DEFAULT_FORWARD = "63"  # the C library's
_keyval: Any = None  # of the attribute that communicators have whose hint `forward` is set
_world_is_set = False  # MPI_COMM_WORLD has the attribute

# The settings of the library, and the stream, which is no setting.
NAMES = frozenset(
    "alpha beta calibration check_starts chunk columns cuda_aware cuda_least element explain forward fuse "
    "gamma grain imbalance learn log log_file long model nodes overhead partition preload_limit "
    "preload_min_bytes preload_nonblocking preload_report profile_every progress recompute relay scheme seed "
    "segment speculate staging stall stream threads throttle trace wire wire_values".split()
)


def _find_unknown(names: Iterable[str]) -> str:
    """The error in the names of hints; empty if there is none."""
    for name in names:
        plain = name.replace("mpix_sparse_", "", 1) if name.startswith("mpix_sparse_") else name
        if plain not in NAMES:
            nearest = difflib.get_close_matches(plain, NAMES, 1)
            every = f"the hints are {', '.join(sorted(NAMES))}"
            return f"there is no hint {name!r}; " + (f"did you mean {nearest[0]!r}?" if nearest else every)
    return ""


class Info(_mpi.Info):
    """An info object for a collective call. If this rank has a problem, such as a hint whose name is unknown,
    the object has a scheme that all ranks refuse.

    Args:
        hints: names, with or without mpix_sparse_, and values.
        problem: the error in this rank's other arguments; empty if there is none.
    """

    def __init__(self, hints: Mapping[str, Any], problem: str = "") -> None:
        self._problem = problem or _find_unknown(hints)
        super().__init__({"scheme": _problems.REFUSED_SCHEME} if self._problem else hints)

    def check(self, code: int, comm: Any) -> None:
        """Raise ValueError if the problem was this rank's, or Error if the call failed."""
        _problems.check(code, self._problem, comm)


def _refuse_info(error: Exception, comm: Any) -> None:
    """Make set_info() of the other ranks fail. Collective."""
    handle = _mpi.communicator(comm)
    with contextlib.suppress(ValueError), Info({}, str(error)) as info:
        _problems.check(library.MPIX_Sparse_comm_set_info(handle, info), str(error), handle)


@collective(_refuse_info)
def set_info(comm: Any = None, **hints: Any) -> None:
    """Set hints for later calls and plans on a communicator. Collective; waits for calls in flight there.

    Args:
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        hints: scheme="balanced", wire_values="bf16", explain=True, and so on, the same on all ranks; see
            mpix_sparse_environment(7). The hint stream may differ between ranks: the address
            of the CUDA stream that calls on device memory are ordered against, 0 for the default stream.
            forward=63 passes small and dense calls to MPI without a check of arguments, as the C library does
            by default; forward=0 checks all, the default here.

    Raises:
        ValueError: there is no hint of a name; the other ranks get an Error. No hint has changed then.
        Error: a value is wrong, or differs between ranks. No hint has changed then.
    """
    handle, made = _mpi.communicator(comm), Info(hints)
    _mpi.note_part(handle)
    with made as info:
        made.check(library.MPIX_Sparse_comm_set_info(handle, info), handle)
    if any(name.removeprefix("mpix_sparse_") == FORWARD for name in hints):
        _mark(handle)


def _is_marked(comm: Any) -> bool:
    if comm.value == _mpi.WORLD.value:
        return _world_is_set
    value, found = ctypes.c_void_p(), ctypes.c_int(0)
    if _keyval is not None:
        _mpi.check(library.MPI_Comm_get_attr(comm, _keyval, ctypes.byref(value), ctypes.byref(found)))
    return found.value != 0


def _mark(comm: Any) -> None:
    """Set the attribute, which duplicates do not inherit. Collective over comm."""
    global _keyval, _world_is_set
    _mpi.note_first_call(comm)
    if comm.value == _mpi.WORLD.value:
        _world_is_set = True
        return
    if _keyval is None:
        keyval = ctypes.c_int()
        names = "OMPI_C_MPI_COMM_NULL_COPY_FN", "OMPI_C_MPI_COMM_NULL_DELETE_FN"
        functions = [ctypes.c_void_p(address(library, name)) for name in names]  # null in MPICH
        _mpi.check(library.MPI_Comm_create_keyval(*functions, ctypes.byref(keyval), None))
        _keyval = keyval
    _mpi.check(library.MPI_Comm_set_attr(comm, _keyval, None))


def _is_set_in_environment(comm: Any) -> bool:
    """True if MPIX_SPARSE_FORWARD is set on rank 0, whose environment counts in the C library too."""
    flag = ctypes.c_int("MPIX_SPARSE_FORWARD" in os.environ)
    _mpi.check(library.MPI_Bcast(ctypes.byref(flag), 1, _mpi.constant("INT32_T"), 0, comm))
    return flag.value != 0


def forward(comm: Any) -> str:
    """The hint `forward` of a communicator. Opens it with the hints that MPI keeps for it: collective."""
    _mpi.check(library.MPIX_Sparse_comm_set_info(comm, _mpi.constant("INFO_NULL")))
    return get_info(comm)[FORWARD]


def check_arguments(comm: Any) -> None:
    """Make the C library check the arguments of all calls on a communicator, unless the user has set the hint
    `forward` or MPIX_SPARSE_FORWARD. Collective if it is the first call there.

    Args:
        comm: a handle.
    """
    if not _is_marked(comm):
        with _counts.one_thread(comm):
            _prepare(comm)


def _prepare(comm: Any) -> None:
    """Do what check_arguments() does, unless another thread has done it."""
    inter = ctypes.c_int()
    if _is_marked(comm):
        return
    if comm.value != _mpi.WORLD.value:
        _counts.unregister(comm)  # a communicator that was freed may have had its handle
    _mpi.check(library.MPI_Comm_test_inter(comm, ctypes.byref(inter)))
    if not inter.value and not _is_set_in_environment(comm):
        if forward(comm) == _DEFAULT_FORWARD:
            set_info(comm, forward=0)
    _mark(comm)
    if not inter.value and not _counts.is_registered(comm):
        _counts.register(comm, "of the program")


def checks_starts(hints: Mapping[str, Any] | None) -> bool:
    """True unless the hints of a plan turn the checks of its starts off."""
    return str((hints or {}).get("check_starts", "on")).lower() not in ("off", "0", "no", "false")


def info_of_plan(comm: Any, type_name: str, hints: Mapping[str, Any] | None, problem: str = "") -> Info:
    """The hints of a plan: the user's, those of its type, and that its starts are checked, if calls on its
    communicator are checked.

    Args:
        comm: a handle.
        problem: as for Info.
    """
    checks = {"check_starts": "on"} if get_info(comm).get(FORWARD) == "0" else {}
    return Info({**checks, **_types.hints(type_name), **(hints or {})}, problem)


def communicator(comm: Any) -> Any:
    """The handle of a communicator for a collective call, whose arguments ranks compare.

    Args:
        comm: None, a communicator of mpi4py, or a handle of one that was prepared already.
    """
    if comm is None and _world_is_set:
        _mpi.init()
        return _mpi.WORLD
    handle = _mpi.communicator(comm)
    if not isinstance(comm, _mpi.Handle):
        check_arguments(handle)
    return handle


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
    if name not in _types.HALVES:
        return
    for hint, value in _types.hints(name).items():
        if get_info(comm).get(hint) != value:
            raise TypeError(f"{name} needs a hint on the communicator: set_info(comm, {hint}={value!r})")
