# SPDX-License-Identifier: BSD-3-Clause
"""Handles and constants of MPI, initialisation and end, and the communicators that users pass."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Iterator, Mapping

from . import _launcher
from ._error import Error
from ._library import address, library, mpi_version, refuse_foreign_mpi4py

# Name of a constant → its value in MPICH and derivatives (fixed by their ABI), its symbol in Open MPI.
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
_MPICH_LIKE = ("MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation")
if not _OPEN_MPI and not any(name in mpi_version(library) for name in _MPICH_LIKE):
    raise ImportError(
        f"mpix_sparse knows the handles of MPICH, its kin and Open MPI, not of {mpi_version(library)}"
    )

Handle = ctypes.c_void_p if _OPEN_MPI else ctypes.c_int
IN_PLACE = ctypes.c_void_p(1 if _OPEN_MPI else -1)
STATUS_IGNORE = ctypes.c_void_p(0 if _OPEN_MPI else 1)
COMM_TYPE_SHARED = 0 if _OPEN_MPI else 1
ANY_SOURCE = -1 if _OPEN_MPI else -2
STATUS_SOURCE = 0 if _OPEN_MPI else 2  # position of MPI_SOURCE among a status' integers
THREAD_MULTIPLE = 3
MAX_ERROR_STRING = 1024
_MAX_HINT = 256 if _OPEN_MPI else 1024  # MPI_MAX_INFO_VAL
MAX_INFO_KEY = 256
MAX_INFO_VALUE = 1024


def constant(name: str) -> Any:
    """The handle of an MPI constant; its name without MPI_."""
    value, symbol = _CONSTANTS[name]
    return Handle(address(library, symbol) if _OPEN_MPI else value)


WORLD = constant("COMM_WORLD")


@functools.lru_cache(maxsize=None)
def max_tag() -> int:
    """The largest tag of a message that MPI takes. MPI is initialised."""
    value, found = ctypes.POINTER(ctypes.c_int)(), ctypes.c_int()
    keyval = ctypes.c_int(0 if _OPEN_MPI else 0x64400001)  # MPI_TAG_UB
    check(library.MPI_Comm_get_attr(WORLD, keyval, ctypes.byref(value), ctypes.byref(found)))
    return value[0] if found.value else 32767  # which all MPIs take


def error_string(code: int) -> str:
    """MPI's text for an error code."""
    text, length = ctypes.create_string_buffer(MAX_ERROR_STRING), ctypes.c_int()
    library.MPI_Error_string(ctypes.c_int(code), text, ctypes.byref(length))
    return text.value.decode(errors="replace")


_MISMATCH = "MPIX_Sparse: calls differ between ranks"  # name of the C library's class of such errors


def is_mismatch(code: int) -> bool:
    """True if an error code says that ranks make different calls."""
    kind = ctypes.c_int()
    check(library.MPI_Error_class(ctypes.c_int(code), ctypes.byref(kind)))
    return error_string(kind.value) == _MISMATCH


calls_completed = 0  # by this process; the watchdog reads it


def check(code: int) -> None:
    """Raise Error unless a function of MPI, or of the C library, returned MPI_SUCCESS."""
    global calls_completed
    calls_completed += 1
    if code != 0:
        raise Error(error_string(code), code)


# Threads share these flags, which only change from 0 to 1.
_initialized, _finalized = ctypes.c_int(), ctypes.c_int()
_initialized_pointer, _finalized_pointer = ctypes.byref(_initialized), ctypes.byref(_finalized)


def is_finalized() -> bool:
    """True if MPI has been finalized, by any library."""
    library.MPI_Finalized(_finalized_pointer)
    return _finalized.value != 0


def is_initialized() -> bool:
    """True if MPI has been initialised, by any library, and not finalized."""
    if not _initialized.value:
        library.MPI_Initialized(_initialized_pointer)
    return _initialized.value != 0 and not is_finalized()


def allows_threads() -> bool:
    """True if MPI was initialised with MPI_THREAD_MULTIPLE."""
    level = ctypes.c_int()
    check(library.MPI_Query_thread(ctypes.byref(level)))
    return level.value >= THREAD_MULTIPLE


_initializer_pid = 0  # pid of the process in which init() initialised MPI; forked children must not finalize
_init_hooks: list[Any] = []
_first_call_hooks: list[Any] = []
_end_hooks: list[Any] = []
_finalize_hooks: list[Any] = []


def add_init_hook(function: Any) -> None:
    """Call a function when init() has initialised MPI."""
    _init_hooks.append(function)


def add_first_call_hook(function: Any) -> None:
    """Call a function with each communicator when the package first makes a collective call on it."""
    _first_call_hooks.append(function)


def add_end_hook(function: Any) -> None:
    """Call a function in finalize(), before all others."""
    _end_hooks.append(function)


def add_finalize_hook(function: Any) -> None:
    """Call a function in finalize(), before functions that were added earlier."""
    _finalize_hooks.append(function)


def note_first_call(comm: Any) -> None:
    """Call the hooks for the first collective call on a communicator. Collective over comm."""
    note_part(comm)
    for function in _first_call_hooks:
        function(comm)


def is_ours() -> bool:
    """True if init() has initialised MPI in this process, and MPI has not been finalized."""
    return _initializer_pid == os.getpid() and is_initialized()


def init() -> None:
    """Initialise MPI with MPI_THREAD_MULTIPLE, unless it is initialised. Collective over all processes.

    Every function of this package that needs MPI calls this one. Errors on MPI_COMM_WORLD become exceptions.
    If this function has initialised MPI, the package finalizes MPI when Python ends. It aborts all ranks if
    Python ends by an exception, or by sys.exit(), exit(), quit() or os._exit() with a status other than 0. It
    also aborts them if a rank ends in any other way while all others wait in a call of this package; and so
    if mpi4py or the program has initialised MPI, from the first collective call over all ranks on.

    Raises:
        Error: MPI has been finalized, or cannot be initialised; or the launcher belongs to another MPI, or to
            none, so that MPI has one rank and the launcher several.
        ImportError: mpi4py has been imported and is built for another MPI.
    """
    global _initializer_pid
    refuse_foreign_mpi4py()
    if is_initialized():
        _prepare()
        return
    if is_finalized():
        raise Error("MPI has been finalized, and can be initialised only once")
    check(library.MPI_Init_thread(None, None, THREAD_MULTIPLE, ctypes.byref(ctypes.c_int())))
    _initializer_pid = os.getpid()
    _prepare()
    for function in _init_hooks:
        function()


_prepared = False


def _prepare() -> None:
    """Check the launcher. Make MPI return errors on MPI_COMM_WORLD, as mpi4py does, unless the program has
    set a handler."""
    global _prepared
    if _prepared:
        return
    handler = Handle()
    check(library.MPI_Comm_get_errhandler(WORLD, ctypes.byref(handler)))
    if handler.value == constant("ERRORS_ARE_FATAL").value:
        check(library.MPI_Comm_set_errhandler(WORLD, constant("ERRORS_RETURN")))
    _launcher.refuse_other_launcher(size(WORLD), _OPEN_MPI)
    _prepared = True


def is_refused() -> bool:
    """True if init() has initialised MPI and then refused the launcher: MPI has one rank."""
    return is_ours() and not _prepared


def finalize() -> None:
    """Wait for all calls in flight; finalize MPI if init() initialised it. Collective over all processes."""
    global _initializer_pid
    if not is_initialized():
        return
    for function in [*_end_hooks, *reversed(_finalize_hooks)]:
        function()
    if is_ours():
        _initializer_pid = 0
        check(library.MPI_Finalize())


uses_parts = False  # a communicator of some ranks only is in use; the watchdog reads it


def note_part(comm: Any) -> None:
    """Note if a communicator has some ranks only."""
    global uses_parts
    uses_parts = uses_parts or size(comm) < size()


def communicator(comm: Any, name: str = "comm") -> Any:
    """The handle of a communicator that users pass: None for MPI_COMM_WORLD, one of mpi4py, or a handle. The
    name is the argument's, for the error."""
    if isinstance(comm, Handle):
        return comm
    if comm is None:
        init()
        return WORLD
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Comm):
        raise TypeError(f"{name} must be None or a communicator of mpi4py, not {type(comm).__name__}")
    refuse_foreign_mpi4py()
    return Handle(Handle.from_address(mpi._addressof(comm)).value)


def rank(comm: Any = None) -> int:
    """The rank of this process in a communicator. Not collective."""
    number = ctypes.c_int()
    check(library.MPI_Comm_rank(communicator(comm), ctypes.byref(number)))
    return number.value


def size(comm: Any = None) -> int:
    """The number of ranks of a communicator. Not collective."""
    number = ctypes.c_int()
    check(library.MPI_Comm_size(communicator(comm), ctypes.byref(number)))
    return number.value


def world_ranks(comm: Any) -> list[int]:
    """The numbers in MPI_COMM_WORLD of a communicator's ranks; negative for ranks that are not in it. Not
    collective."""
    count, theirs, everyone = size(comm), Handle(), Handle()
    numbers, found = (ctypes.c_int * count)(*range(count)), (ctypes.c_int * count)()
    check(library.MPI_Comm_group(comm, ctypes.byref(theirs)))
    check(library.MPI_Comm_group(WORLD, ctypes.byref(everyone)))
    check(library.MPI_Group_translate_ranks(theirs, ctypes.c_int(count), numbers, everyone, found))
    for group in (theirs, everyone):
        check(library.MPI_Group_free(ctypes.byref(group)))
    return list(found)


class Info:
    """An info object with hints for this library, freed at the end of the block. The prefix
    mpix_sparse_ of names is optional."""

    def __init__(self, hints: Mapping[str, Any] | None) -> None:
        self._hints = dict(hints or {})
        self.handle = constant("INFO_NULL")

    def __enter__(self) -> Any:
        if self._hints:
            check(library.MPI_Info_create(ctypes.byref(self.handle)))
        for name, value in self._hints.items():
            key = name if name.startswith("mpix_sparse_") else f"mpix_sparse_{name}"
            text = ("on" if value else "off") if isinstance(value, bool) else str(value)
            if len(text) >= _MAX_HINT:
                raise ValueError(
                    f"the value of the hint {name} has {len(text)} characters, more than {_MAX_HINT - 1}"
                )
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
