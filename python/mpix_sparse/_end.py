# SPDX-License-Identifier: BSD-3-Clause
"""The end of a program: finalizes MPI, or aborts all ranks if the program fails, since the other ranks would
wait forever."""

from __future__ import annotations

import _sitebuiltins
import atexit
import contextlib
import os
import sys
import threading
from typing import Any, NoReturn

from . import _mpi, _watchdog

_exit_status = 0  # set when sys.exit() ends the program


class _Exit(SystemExit):
    """The exception of sys.exit(). Python has no hook for it, but reads `code` without any frame left when
    the exception ends the program."""

    @property
    def code(self) -> Any:  # type: ignore[override]
        global _exit_status
        found = SystemExit.code.__get__(self)  # type: ignore[attr-defined]
        if sys._getframe().f_back is None:
            _exit_status = _status_of(found)
        return found

    @code.setter
    def code(self, status: Any) -> None:
        SystemExit.code.__set__(self, status)  # type: ignore[attr-defined]


def _status_of(code: Any) -> int:
    """The exit status of a SystemExit's code, in 8 bits. Only None and 0 give 0."""
    return (code & 255 or int(code != 0)) if isinstance(code, int) else int(code is not None)


_plain_exit = sys.exit
_plain_quit = _sitebuiltins.Quitter.__call__


def _exit(status: Any = None, /) -> NoReturn:
    """sys.exit(): end the program with a status, and all ranks if it is not 0."""
    # In other threads sys.exit() ends only the thread.
    if threading.current_thread() is threading.main_thread():
        raise _Exit(status)
    _plain_exit(status)


def _quit(quitter: Any, code: Any = None) -> NoReturn:
    """exit() and quit(), which also close the input."""
    with contextlib.suppress(SystemExit):
        _plain_quit(quitter, code)
    _exit(code)


def _exit_now(status: int) -> NoReturn:
    """os._exit(): end the process without Python's clean-up. With status 0 it finalizes MPI; with another it
    aborts all ranks."""
    try:
        if _mpi.is_ours() and status:
            _abort(_status_of(status))
        if _mpi.is_ours():
            _mpi.finalize()
    finally:
        _watchdog.exit_process(status)


def _abort(status: int) -> NoReturn:
    reason = f"rank {_mpi.rank()} ends with status {status}, so all ranks are aborted"
    _watchdog.abort(reason, status)


def _replace_exits() -> None:
    sys.exit, _sitebuiltins.Quitter.__call__, os._exit = _exit, _quit, _exit_now


_mpi.add_init_hook(_replace_exits)
_loader_pid = os.getpid()


@atexit.register
def _end() -> None:
    if os.getpid() != _loader_pid:
        return
    status = _exit_status or int(getattr(sys, "last_value", None) is not None)
    if not status or _mpi.is_refused():
        _mpi.finalize()
    elif _mpi.is_ours():
        _abort(status)
    else:
        _watchdog.wait_for_end()
