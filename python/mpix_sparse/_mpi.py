# SPDX-License-Identifier: BSD-3-Clause
"""Handles and constants of MPI, its start and end, and communicators as users give them."""

from __future__ import annotations

import _sitebuiltins
import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time
from typing import Any, Iterator, Mapping, NoReturn

from ._error import Error
from ._library import address, library, mpi_version, refuse_foreign_mpi4py

# The name of a constant, its value in MPICH and its kin, whose ABI is fixed, and its symbol in Open MPI.
_CONSTANTS: dict[str, tuple[int, str]] = {
    "COMM_WORLD": (0x44000000, "ompi_mpi_comm_world"),
    "COMM_SELF": (0x44000001, "ompi_mpi_comm_self"),
    "COMM_NULL": (0x04000000, "ompi_mpi_comm_null"),
    "DATATYPE_NULL": (0x0C000000, "ompi_mpi_datatype_null"),
    "INFO_NULL": (0x1C000000, "ompi_mpi_info_null"),
    "REQUEST_NULL": (0x2C000000, "ompi_request_null"),
    "ERRORS_ARE_FATAL": (0x54000000, "ompi_mpi_errors_are_fatal"),
    "ERRORS_RETURN": (0x54000001, "ompi_mpi_errors_return"),
    "BYTE": (0x4C00010D, "ompi_mpi_byte"),
    "C_BOOL": (0x4C00013F, "ompi_mpi_c_bool"),
    "INT8_T": (0x4C000137, "ompi_mpi_int8_t"),
    "INT16_T": (0x4C000238, "ompi_mpi_int16_t"),
    "INT32_T": (0x4C000439, "ompi_mpi_int32_t"),
    "INT64_T": (0x4C00083A, "ompi_mpi_int64_t"),
    "UINT8_T": (0x4C00013B, "ompi_mpi_uint8_t"),
    "UINT16_T": (0x4C00023C, "ompi_mpi_uint16_t"),
    "UINT32_T": (0x4C00043D, "ompi_mpi_uint32_t"),
    "UINT64_T": (0x4C00083E, "ompi_mpi_uint64_t"),
    "FLOAT": (0x4C00040A, "ompi_mpi_float"),
    "DOUBLE": (0x4C00080B, "ompi_mpi_double"),
    "C_FLOAT_COMPLEX": (0x4C000840, "ompi_mpi_c_float_complex"),
    "C_DOUBLE_COMPLEX": (0x4C001041, "ompi_mpi_c_double_complex"),
    "MAX": (0x58000001, "ompi_mpi_op_max"),
    "MIN": (0x58000002, "ompi_mpi_op_min"),
    "SUM": (0x58000003, "ompi_mpi_op_sum"),
    "PROD": (0x58000004, "ompi_mpi_op_prod"),
    "LAND": (0x58000005, "ompi_mpi_op_land"),
    "BAND": (0x58000006, "ompi_mpi_op_band"),
    "LOR": (0x58000007, "ompi_mpi_op_lor"),
    "BOR": (0x58000008, "ompi_mpi_op_bor"),
    "LXOR": (0x58000009, "ompi_mpi_op_lxor"),
    "BXOR": (0x5800000A, "ompi_mpi_op_bxor"),
}

_OPEN_MPI = address(library, "ompi_mpi_comm_world") is not None
_KIN = ("MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation")
if not _OPEN_MPI and not any(name in mpi_version(library) for name in _KIN):
    raise ImportError(
        f"mpix_sparse knows the handles of MPICH, its kin and Open MPI, not of {mpi_version(library)}"
    )

Handle = ctypes.c_void_p if _OPEN_MPI else ctypes.c_int
IN_PLACE = ctypes.c_void_p(1 if _OPEN_MPI else -1)
STATUS_IGNORE = ctypes.c_void_p(0 if _OPEN_MPI else 1)
COMM_TYPE_SHARED = 0 if _OPEN_MPI else 1
THREAD_MULTIPLE = 3
MAX_ERROR_STRING = 1024
MAX_INFO_KEY = 256
MAX_INFO_VALUE = 1024


def constant(name: str) -> Any:
    """The handle of a constant of MPI, named without its MPI_."""
    value, symbol = _CONSTANTS[name]
    return Handle(address(library, symbol) if _OPEN_MPI else value)


def sentence(code: int) -> str:
    """What MPI says about an error code."""
    text, length = ctypes.create_string_buffer(MAX_ERROR_STRING), ctypes.c_int()
    library.MPI_Error_string(ctypes.c_int(code), text, ctypes.byref(length))
    return text.value.decode(errors="replace")


def check(code: int) -> None:
    """Raise Error unless a function of MPI, or of the C library, returned MPI_SUCCESS."""
    if code != 0:
        raise Error(sentence(code), code)


def _flag(function: Any) -> bool:
    flag = ctypes.c_int()
    function(ctypes.byref(flag))
    return flag.value != 0


def is_initialized() -> bool:
    """Whether MPI has been initialised, by whomever, and not been finalized."""
    return _flag(library.MPI_Initialized) and not _flag(library.MPI_Finalized)


def allows_threads() -> bool:
    """Whether any thread may call MPI at any time."""
    level = ctypes.c_int()
    check(library.MPI_Query_thread(ctypes.byref(level)))
    return level.value >= THREAD_MULTIPLE


_ours = 0  # the process that initialised MPI here; its children must not finalize
_status = 0  # of the program's end, once sys.exit() has ended it
_before_end: list[Any] = []


def before_end(function: Any) -> None:
    """Have a function called before MPI ends."""
    _before_end.append(function)


def init() -> None:
    """Initialise MPI, with MPI_THREAD_MULTIPLE, unless somebody has. Collective over all processes.

    Every function of this package does so when it needs MPI. Errors on MPI_COMM_WORLD become exceptions from
    here on. Where this function has initialised MPI the package finalizes it when Python ends, or aborts all
    ranks when Python ends by an exception, or by sys.exit(), exit() or quit() with another status than 0,
    since the others would wait for this one for ever. It cannot see a `raise SystemExit(status)`.

    Raises:
        Error: MPI has been finalized, or cannot be initialised.
        ImportError: mpi4py has been imported and is built for another MPI.
    """
    global _ours
    refuse_foreign_mpi4py()
    if is_initialized():
        _return_errors()
        return
    if _flag(library.MPI_Finalized):
        raise Error("MPI has been finalized, and can be initialised only once")
    check(library.MPI_Init_thread(None, None, THREAD_MULTIPLE, ctypes.byref(ctypes.c_int())))
    _ours = os.getpid()
    sys.exit, _sitebuiltins.Quitter.__call__ = _exit, _quit
    _return_errors()


_returning = False


def _return_errors() -> None:
    """Have errors on MPI_COMM_WORLD come back as codes, as mpi4py does, unless the program has a handler
    there."""
    global _returning
    if _returning:
        return
    handler = Handle()
    check(library.MPI_Comm_get_errhandler(constant("COMM_WORLD"), ctypes.byref(handler)))
    if handler.value == constant("ERRORS_ARE_FATAL").value:
        check(library.MPI_Comm_set_errhandler(constant("COMM_WORLD"), constant("ERRORS_RETURN")))
    _returning = True


def finalize() -> None:
    """Wait for all handles, and finalize MPI if init() has initialised it. Collective over all processes."""
    global _ours
    if not is_initialized():
        return
    for function in reversed(_before_end):
        function()
    if _ours == os.getpid():
        _ours = 0
        check(library.MPI_Finalize())


class _Exit(SystemExit):
    """What sys.exit() raises. Python tells nobody that it ends by one, but asks for the code when no frame is
    left that could catch it."""

    @property
    def code(self) -> Any:  # type: ignore[override]
        global _status
        found = SystemExit.code.__get__(self)  # type: ignore[attr-defined]
        if sys._getframe().f_back is None:
            _status = _status_of(found)
        return found

    @code.setter
    def code(self, status: Any) -> None:
        SystemExit.code.__set__(self, status)  # type: ignore[attr-defined]


def _status_of(code: Any) -> int:
    """What launchers see of a SystemExit's code, in 8 bits, save that nothing but None and 0 looks like 0."""
    return (code & 255 or int(code != 0)) if isinstance(code, int) else int(code is not None)


_plain_exit = sys.exit
_plain_quit = _sitebuiltins.Quitter.__call__


def _exit(status: Any = None, /) -> NoReturn:
    """sys.exit(): end the program with a status, and all ranks with it where it is not 0."""
    # In other threads it ends the thread only, by an exception of no other type.
    if threading.current_thread() is threading.main_thread():
        raise _Exit(status)
    _plain_exit(status)


def _quit(quitter: Any, code: Any = None) -> NoReturn:
    """exit() and quit(): they close the input, too."""
    with contextlib.suppress(SystemExit):
        _plain_quit(quitter, code)
    _exit(code)


_loader = os.getpid()


@atexit.register
def _end() -> None:
    if os.getpid() != _loader:
        return
    status = _status or int(getattr(sys, "last_value", None) is not None)
    if not status:
        finalize()
    elif _ours:
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(0.5)  # launchers lose what is written right before an abort
        library.MPI_Abort(constant("COMM_WORLD"), status)
        os._exit(status)


def communicator(comm: Any, name: str = "comm") -> Any:
    """The handle of a communicator as users give it, by an argument's name: None for MPI_COMM_WORLD, one of
    mpi4py, or a handle."""
    if isinstance(comm, Handle):
        return comm
    if comm is None:
        init()
        return constant("COMM_WORLD")
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Comm):
        raise TypeError(f"{name} must be None or a communicator of mpi4py, not {type(comm).__name__}")
    refuse_foreign_mpi4py()
    return Handle(Handle.from_address(mpi._addressof(comm)).value)


def rank(comm: Any = None) -> int:
    """This process's rank in a communicator. Not collective."""
    number = ctypes.c_int()
    check(library.MPI_Comm_rank(communicator(comm), ctypes.byref(number)))
    return number.value


def size(comm: Any = None) -> int:
    """The number of ranks of a communicator. Not collective."""
    number = ctypes.c_int()
    check(library.MPI_Comm_size(communicator(comm), ctypes.byref(number)))
    return number.value


def barrier(comm: Any = None) -> None:
    """Wait for all ranks of a communicator. Collective."""
    check(library.MPI_Barrier(communicator(comm)))


class Info:
    """An info object with hints for this library, freed with the block. A hint's name may lack its
    mpix_sparse_."""

    def __init__(self, hints: Mapping[str, Any] | None) -> None:
        self._hints = dict(hints or {})
        self.handle = constant("INFO_NULL")

    def __enter__(self) -> Any:
        if self._hints:
            check(library.MPI_Info_create(ctypes.byref(self.handle)))
        for name, value in self._hints.items():
            key = name if name.startswith("mpix_sparse_") else f"mpix_sparse_{name}"
            text = ("on" if value else "off") if isinstance(value, bool) else str(value)
            check(library.MPI_Info_set(self.handle, key.encode(), text.encode()))
        return self.handle

    def __exit__(self, *unused: Any) -> None:
        if self._hints:
            library.MPI_Info_free(ctypes.byref(self.handle))


def info_items(info: Any) -> Iterator[tuple[str, str]]:
    """The keys and values of an info object."""
    count, found = ctypes.c_int(), ctypes.c_int()
    key, value = ctypes.create_string_buffer(MAX_INFO_KEY), ctypes.create_string_buffer(MAX_INFO_VALUE + 1)
    check(library.MPI_Info_get_nkeys(info, ctypes.byref(count)))
    for i in range(count.value):
        check(library.MPI_Info_get_nthkey(info, i, key))
        check(library.MPI_Info_get(info, key, MAX_INFO_VALUE, value, ctypes.byref(found)))
        yield key.value.decode(), value.value.decode()
