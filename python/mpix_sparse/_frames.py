# SPDX-License-Identifier: BSD-3-Clause
"""Finds what the threads of this process do, by their Python frames: calls of this package, and their lines
in the program."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import sys
import sysconfig
import threading
import time
from tempfile import TemporaryFile
from typing import IO, Any, Collection, Iterator, List, NamedTuple


def _escaped(text: str) -> str:
    """A path as faulthandler prints it."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


_FOLDER = _escaped(os.path.dirname(os.path.abspath(__file__)) + os.sep)
OWN = "mpix_sparse"  # first word of the names of this package's threads
WATCHDOG = f"{OWN} watchdog"  # name of the thread of _watchdog.py, which is in no call
_CALLBACKS = f"{OWN} callbacks"  # of those that run functions of the program
_WRAPPER = "_collective.py"  # its function is the outermost one of many calls
_DECORATORS = tuple(f"{os.sep}{name}.py" for name in ("contextlib", "functools", "c10d_logger"))
_LIBRARIES = tuple({_escaped(sysconfig.get_path(name) + os.sep) for name in ("stdlib", "purelib", "platlib")})
_END = "_end.py", "_end"

# Functions that wait for a call, and those that they call again and again, by file and name.
_BLOCKING = "_counts.py", "blocking_call"
_WAITS = {
    *(_BLOCKING, ("_world.py", "_create"), ("_backend.py", "_compare_offers")),
    ("_pending.py", "wait_for_all"),
    *((f"_{module}.py", "wait") for module in ("pending", "deferred", "probe")),
    *(("_callbacks.py", name) for name in ("wait_for_future", "_wait_for_call")),
}
_POLLS = {
    *(("_pending.py", name) for name in ("done", "test", "test_others")),
    *(("_deferred.py", name) for name in ("advance", "advance_first", "done")),
    *(("_work.py", name) for name in ("done", "<listcomp>")),
    *(("_probe.py", name) for name in ("done", "find_message")),
}

_THREADING = _escaped(threading.__file__)  # whose innermost functions wait for another thread
_BACKWARD = os.path.join("torch", "autograd", "")  # whose innermost functions run a backward pass

_THREAD = re.compile("(?:Current thread|Thread) 0x([0-9a-f]+)")
_ESCAPE = re.compile(r"\\[xuU]((?<=x)[0-9a-f]{2}|(?<=u)[0-9a-f]{4}|(?<=U)[0-9a-f]{8})")
_FRAME = re.compile('  File "(.*)", line ([0-9?]+) in (.*)')

_bounded = 0  # waits with a time limit
_processor_seconds: dict[int, float] = {}  # used by threads, at the last sample of each


@contextlib.contextmanager
def bounded_wait() -> Iterator[None]:
    """A block that waits, but not for ever."""
    global _bounded
    _bounded += 1
    try:
        yield
    finally:
        _bounded -= 1


class _Frame(NamedTuple):
    """A function that runs."""

    file: str
    line: str
    function: str


_Stack = List[_Frame]  # innermost first


def _open_file() -> IO[bytes] | None:
    """A file in memory where there are such; None where there is no descriptor for it."""
    try:
        return open(os.memfd_create("stacks"), "r+b", 0) if hasattr(os, "memfd_create") else TemporaryFile()
    except OSError:
        return None


_file = _open_file()  # kept: later there may be no descriptor
_lock = threading.Lock()  # of the file


def _dump() -> list[str]:
    """What faulthandler prints of all threads, before another thread goes on."""
    if _file is None:
        return ["..."]
    with _lock:
        _file.seek(0)
        _file.truncate()
        faulthandler.dump_traceback(_file.fileno(), all_threads=True)
        _file.seek(0)
        return _file.read().decode("ascii", "replace").splitlines()


def _walk(frame: Any) -> Iterator[_Frame]:
    while frame is not None:
        code = frame.f_code
        yield _Frame(_escaped(code.co_filename), str(frame.f_lineno), _escaped(code.co_name))
        frame = frame.f_back


def _stacks() -> dict[int, _Stack]:
    """The stack of each thread. Frame objects of other threads are used only if there are more threads
    than faulthandler prints: Python 3.11 was seen to read from them memory of a function that had ended."""
    stacks: dict[int, _Stack] = {}
    stack: _Stack = []
    lines = _dump()
    if "..." in lines:
        return {thread: list(_walk(frame)) for thread, frame in sys._current_frames().items()}
    for line in lines:
        thread, frame = _THREAD.match(line), _FRAME.fullmatch(line)
        if thread:
            stack = stacks.setdefault(int(thread[1], 16), [])
        elif frame:
            stack.append(_Frame(*frame.groups()))
    return {thread: stack for thread, stack in stacks.items() if stack}


def _is_ours(frame: _Frame) -> bool:
    return frame.file.startswith(_FOLDER)


def _is_library(frame: _Frame) -> bool:
    """True for a function of this package, of Python's library, or of an installed package."""
    parts = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
    name = frame.file
    return _is_ours(frame) or name.startswith((*_LIBRARIES, "<frozen")) or any(part in name for part in parts)


def _depth(stack: _Stack) -> int:
    """The number of innermost frames of a thread that are functions of this package."""
    return next((i for i, frame in enumerate(stack) if not _is_ours(frame)), len(stack))


def _innermost(stack: _Stack) -> tuple[str, str]:
    """File and name of the innermost function of this package that is not called again and again."""
    names = [(os.path.basename(frame.file), frame.function) for frame in stack[: _depth(stack)]]
    return next((name for name in names if name not in _POLLS), ("", ""))


def _waits(stack: _Stack) -> bool:
    """True if a thread waits for a call. Other functions of this package may take long, and start one."""
    return _innermost(stack) in _WAITS


def _is_idle(thread: int) -> bool:
    """True if a thread has used no processor time since the last sample of it. It may have ended since."""
    alive = any(each.ident == thread for each in threading.enumerate())
    if not (alive and hasattr(time, "pthread_getcpuclockid")):
        return False
    try:
        used = time.clock_gettime(time.pthread_getcpuclockid(thread))
    except OSError:
        return False
    before, _processor_seconds[thread] = _processor_seconds.get(thread), used
    return used == before


def _runs_program(stack: _Stack) -> bool:
    """True if a thread of this package runs a function of the program."""
    return any(not _is_ours(frame) and not frame.file.endswith("threading.py") for frame in stack)


def _module_of(file: str) -> str:
    """The name of the module of a file, without its private parts."""
    modules = list(sys.modules.items())
    names = [
        name for name, each in modules if _escaped(str(getattr(each, "__dict__", {}).get("__file__"))) == file
    ]
    return ".".join(part for part in (names or [""])[0].split(".") if part and not part.startswith("_"))


def _is_passed(frame: _Frame) -> bool:
    """True for functions that other functions are called through."""
    through_jax = not _is_ours(frame) and f"{os.sep}jax{os.sep}" in frame.file
    return through_jax or frame.file.endswith((_WRAPPER, *_DECORATORS))


def _describe(stack: _Stack) -> str:
    """The function that the program calls, and the line of the program."""
    length = next((i for i, frame in enumerate(stack) if not _is_library(frame)), len(stack))
    called = [frame for frame in stack[:length] if not _is_passed(frame)]
    function = (called or stack)[-1 if called else 0]
    if (os.path.basename(function.file), function.function) == _END:
        return "its end, which waits for calls in flight"
    where = f" at {os.path.basename(stack[length].file)}:{stack[length].line}" if length < len(stack) else ""
    text = f"{_module_of(function.file)}.{function.function}()".lstrip(".") + where
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


class Activity:
    """What the threads do now.

    Args:
        callers: threads that have called this package.

    Attributes:
        is_in_call: a thread runs a function of this package. The package's own threads are idle in their
            outermost function.
        may_wait: the threads of the program wait, or are idle in a backward pass of PyTorch, which waits for
            calls of DistributedDataParallel. Beside a thread in a call, others may wait for another thread.
        callers_wait: no thread of the program that has called this package does anything else than to wait
            for a call, without a limit. The main thread counts among them.
        surely_waits: callers_wait, and there are no other threads, which may still make their first call.
        is_blocked: the only caller waits in a blocking function, so that nobody tests calls in flight.
        text: the call, or another function, and its line in the program; empty if there is none.
    """

    def __init__(self, callers: Collection[int] = ()) -> None:
        stacks = _stacks()
        stacks.pop(threading.get_ident(), None)
        own = {each.ident: each.name for each in threading.enumerate() if each.name.startswith(OWN)}
        for thread in [thread for thread, name in own.items() if name == WATCHDOG]:
            stacks.pop(thread, None)
        calling = {i for i, stack in stacks.items() if _depth(stack) > (i in own)}
        self.is_in_call = bool(calling)
        main = threading.main_thread().ident
        strangers = {i for i in stacks if not (i in own or i in calling or i in callers or i == main)}
        busy = any(
            i not in strangers
            and not _waits(stack)
            and (i not in own or own[i].startswith(_CALLBACKS) and _runs_program(stack))
            for i, stack in stacks.items()
        )
        self.callers_wait = self.is_in_call and not busy and not _bounded
        self.surely_waits = self.callers_wait and not strangers
        innermost = [_innermost(stack) for i, stack in stacks.items() if i not in strangers]
        self.is_blocked = innermost == [_BLOCKING]
        others = {i: stack for i, stack in stacks.items() if i not in own}
        backward = {i for i, stack in others.items() if _BACKWARD in stack[0].file}
        sleeping = {i for i, stack in others.items() if stack[0].file == _THREADING and self.is_in_call}
        self.may_wait = not _bounded and all(
            i in backward and _is_idle(i) or i in sleeping or _waits(stack) for i, stack in others.items()
        )
        shown = [i for i in sorted(calling, key=lambda i: i != main) if i not in own] or [main]
        self.text = _describe(stacks[shown[0]]) if shown[0] in stacks else ""
