# SPDX-License-Identifier: BSD-3-Clause
"""Finds what the threads of this process do, by their Python frames: calls of this package, and their lines
in the program."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import threading
import time
from typing import Any, Iterator

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
OWN = "mpix_sparse"  # first word of the names of this package's threads
WATCHDOG = f"{OWN} watchdog"  # name of the thread of _watchdog.py, which is in no call
_CALLBACKS = f"{OWN} callbacks"  # of those that run functions of the program
_WRAPPER = "_collective.py"  # its function is the outermost one of many calls
_DECORATORS = tuple(f"{os.sep}{name}.py" for name in ("contextlib", "functools", "c10d_logger"))
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})

# Functions that wait for a call, and those that they call again and again, by file and name.
_WAITS = {
    *(("_counts.py", "blocking_call"), ("_world.py", "_create"), ("_backend.py", "_compare_offers")),
    *((f"_{module}.py", "wait") for module in ("pending", "deferred", "probe")),
    ("_callbacks.py", "_wait_for_call"),
}
_POLLS = {
    *(("_pending.py", name) for name in ("done", "test", "test_others")),
    *(("_deferred.py", name) for name in ("advance", "advance_first", "done")),
    *(("_work.py", name) for name in ("done", "<listcomp>")),
    *(("_probe.py", name) for name in ("done", "find_message")),
}

_BACKWARD = os.path.join("torch", "autograd", "")  # whose innermost functions run a backward pass

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


def _is_ours(frame: Any) -> bool:
    return frame.f_code.co_filename.startswith(_FOLDER)


def _is_library(frame: Any) -> bool:
    """True for a function of this package, of Python's library, or of an installed package."""
    name = frame.f_code.co_filename
    parts = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
    return _is_ours(frame) or name.startswith((*_LIBRARIES, "<frozen")) or any(part in name for part in parts)


def _depth(frame: Any) -> int:
    """The number of innermost frames of a thread that are functions of this package."""
    depth = 0
    while frame is not None and _is_ours(frame):
        depth, frame = depth + 1, frame.f_back
    return depth


def _waits(frame: Any) -> bool:
    """True if a thread waits for a call. Other functions of this package may take long, and start one."""

    def name(frame: Any) -> tuple[str, str]:
        return os.path.basename(frame.f_code.co_filename), frame.f_code.co_name

    while _is_ours(frame) and name(frame) in _POLLS:
        frame = frame.f_back
    return _is_ours(frame) and name(frame) in _WAITS


def _is_idle(thread: int) -> bool:
    """True if a thread has used no processor time since the last sample of it."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return False
    used = time.clock_gettime(time.pthread_getcpuclockid(thread))
    before, _processor_seconds[thread] = _processor_seconds.get(thread), used
    return used == before


def _runs_program(frame: Any) -> bool:
    """True if a thread of this package runs a function of the program."""
    while frame is not None:
        if not _is_ours(frame) and not frame.f_code.co_filename.endswith("threading.py"):
            return True
        frame = frame.f_back
    return False


def _describe(frame: Any) -> str:
    """The function that the program calls, and the line of the program."""
    called = frame
    while frame is not None and _is_library(frame):
        if not frame.f_code.co_filename.endswith((_WRAPPER, *_DECORATORS)):
            called = frame
        frame = frame.f_back
    where = f" at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else ""
    parts = [part for part in called.f_globals.get("__name__", "").split(".") if not part.startswith("_")]
    return ".".join([*parts, called.f_code.co_name]) + "()" + where


class Activity:
    """What the threads do now.

    Attributes:
        is_in_call: a thread runs a function of this package. The package's own threads are idle in their
            outermost function.
        may_wait: the threads of the program wait, or are idle in a backward pass of PyTorch, which waits for
            calls of DistributedDataParallel.
        surely_waits: no thread of the program does anything else than to wait for a call, without a limit.
            Another thread may start a call later.
        text: the call, or another function, and its line in the program; empty if there is none.
    """

    def __init__(self) -> None:
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        own = {each.ident: each.name for each in threading.enumerate() if each.name.startswith(OWN)}
        for thread in [thread for thread, name in own.items() if name == WATCHDOG]:
            frames.pop(thread, None)
        calling = {i for i, frame in frames.items() if _depth(frame) > (i in own)}
        self.is_in_call = bool(calling)
        busy = any(
            own[i].startswith(_CALLBACKS) and _runs_program(frame) if i in own else not _waits(frame)
            for i, frame in frames.items()
        )
        self.surely_waits = self.is_in_call and not busy and not _bounded
        others = {i: frame for i, frame in frames.items() if i not in own}
        backward = {i for i, frame in others.items() if _BACKWARD in frame.f_code.co_filename}
        self.may_wait = not _bounded and all(
            i in backward and _is_idle(i) or _waits(frame) for i, frame in others.items()
        )
        main = threading.main_thread().ident
        shown = [i for i in sorted(calling, key=lambda i: i != main) if i not in own] or [main]
        self.text = _describe(frames[shown[0]]) if shown[0] in frames else ""
