# SPDX-License-Identifier: BSD-3-Clause
"""The handler that XLA calls: a ctypes callback with the ABI of xla/ffi/api/c_api.h, so that nothing is
compiled. XLA calls it on threads of its own; ctypes acquires the interpreter lock."""

from __future__ import annotations

import ctypes
import pathlib
import re
from typing import Any, Callable, Sequence

import jax
import jax.ffi

TARGET = "mpix_sparse_call"
ATTRIBUTE = "call"
# The structures below are those of API 0.x. A minor version only adds fields at their ends.
API_MAJOR, API_MINOR = 0, 3
EXTENSION_METADATA, STAGE_EXECUTE, ATTRIBUTE_STRING, ERROR_INTERNAL = 1, 3, 4, 13


class _Version(ctypes.Structure):
    """XLA_FFI_Api_Version"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major_version", ctypes.c_int),
        ("minor_version", ctypes.c_int),
    ]


class _ErrorCreateArgs(ctypes.Structure):
    """XLA_FFI_Error_Create_Args"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("errc", ctypes.c_int),
    ]


class _StreamGetArgs(ctypes.Structure):
    """XLA_FFI_Stream_Get_Args"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("ctx", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class _Api(ctypes.Structure):
    """XLA_FFI_Api, its first fields"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("api_version", _Version),
        ("internal_api", ctypes.c_void_p),
        ("error_create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorCreateArgs))),
        ("error_get_message", ctypes.c_void_p),
        ("error_destroy", ctypes.c_void_p),
        ("handler_register", ctypes.c_void_p),
        ("stream_get", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_StreamGetArgs))),
    ]


class _Buffer(ctypes.Structure):
    """XLA_FFI_Buffer"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
    ]


class _Buffers(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]


class _Span(ctypes.Structure):
    """XLA_FFI_ByteSpan"""

    _fields_ = [("ptr", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class _Attributes(ctypes.Structure):
    """XLA_FFI_Attrs"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.c_void_p),
        ("attrs", ctypes.POINTER(ctypes.POINTER(_Span))),
    ]


class _Frame(ctypes.Structure):
    """XLA_FFI_CallFrame"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("api", ctypes.POINTER(_Api)),
        ("ctx", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("args", _Buffers),
        ("rets", _Buffers),
        ("attrs", _Attributes),
    ]


class _Metadata(ctypes.Structure):
    """XLA_FFI_Metadata, its first fields"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("api_version", _Version), ("traits", ctypes.c_uint32)]


class _MetadataExtension(ctypes.Structure):
    """XLA_FFI_Metadata_Extension"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


def api_version(header: str) -> tuple[int, int]:
    """The version of XLA's FFI, from the text of its header c_api.h.

    Raises:
        ImportError: its structures are not those of this file.
    """
    found = [re.search(rf"define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR")]
    version = tuple(int(number[1]) for number in found if number)
    if len(version) != 2 or version[0] != API_MAJOR:
        raise ImportError(
            f"jax {jax.__version__} has version {'.'.join(map(str, version)) or 'unknown'} of XLA's FFI, and "
            f"mpix_sparse.jax knows {API_MAJOR}.x; use an older jax or a newer mpix_sparse"
        )
    return version[0], version[1]


_version = api_version(pathlib.Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text("utf-8"))


def _answer_metadata(frame: _Frame) -> None:
    """Answer XLA's question for the API version of this handler. XLA refuses a handler of another major
    version, or of a newer minor version than its own."""
    extension = _MetadataExtension.from_address(frame.extension_start)
    if extension.type != EXTENSION_METADATA:
        return
    version = extension.metadata.contents.api_version
    version.major_version, version.minor_version = API_MAJOR, min(_version[1], API_MINOR)
    extension.metadata.contents.traits = 0


def _pointers(group: _Buffers) -> list[int]:
    """The addresses of buffers."""
    return [group.buffers[i].contents.data or 0 for i in range(group.size)]


def _call_text(attributes: _Attributes) -> bytes:
    """The attribute that says which call this is."""
    if attributes.size != 1 or attributes.types[0] != ATTRIBUTE_STRING:
        raise RuntimeError(f"XLA passes {attributes.size} attributes, and one string is expected")
    span = attributes.attrs[0].contents
    return ctypes.string_at(span.ptr, span.len)


def _check_layout(frame: _Frame) -> None:
    """Raise RuntimeError unless structures inside the frame have the sizes that this file has."""
    for part in (frame.args, frame.rets, frame.attrs):
        if part.struct_size != ctypes.sizeof(part):
            raise RuntimeError(
                f"a structure of XLA's FFI has {part.struct_size} bytes, and mpix_sparse.jax knows one of "
                f"{ctypes.sizeof(part)}; this jax ({jax.__version__}) needs a newer mpix_sparse"
            )


def _error(frame: _Frame, reason: BaseException) -> int:
    """A new XLA_FFI_Error with an exception's text."""
    text = str(reason) or type(reason).__name__
    args = _ErrorCreateArgs(message=f"mpix_sparse: {text}".encode(), errc=ERROR_INTERNAL)
    args.struct_size = ctypes.sizeof(args)
    return frame.api.contents.error_create(ctypes.byref(args))


def _stream(frame: _Frame) -> int:
    """The stream of CUDA that the call belongs to.

    Raises:
        RuntimeError: XLA names none.
    """
    args = _StreamGetArgs(ctx=frame.ctx)
    args.struct_size = ctypes.sizeof(args)
    if frame.api.contents.stream_get(ctypes.byref(args)):
        raise RuntimeError("XLA names no stream of the call")
    return args.stream or 0


Run = Callable[[bytes, Sequence[int], Sequence[int], Any], None]


def _handler(run: Run, on_device: bool) -> Any:
    """The callback, for a function that runs a call.

    ctypes ignores exceptions in callbacks and returns 0, which means success. So every exception, also
    KeyboardInterrupt on the main thread, becomes an error of XLA.
    """

    def handle(address: int) -> int | None:
        frame = _Frame.from_address(address)
        try:
            if frame.extension_start:
                return _answer_metadata(frame)
            if frame.stage == STAGE_EXECUTE:
                _check_layout(frame)
                stream = _stream(frame) if on_device else None
                run(_call_text(frame.attrs), _pointers(frame.args), _pointers(frame.rets), stream)
        except BaseException as reason:
            return _error(frame, reason)
        return None

    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handle)


_keep_alive: list[Any] = []


def register(run: Run) -> None:
    """Register a handler with XLA for the CPU, and one for CUDA.

    Args:
        run: takes the text of the call, the addresses of its operands, those of its results, and the stream
            of CUDA; None on the CPU.
    """
    for platform in ("cpu", "CUDA"):
        handler = _handler(run, on_device=platform != "cpu")
        _keep_alive.append(handler)
        capsule = jax.ffi.pycapsule(ctypes.cast(handler, ctypes.c_void_p).value)
        jax.ffi.register_ffi_target(TARGET, capsule, platform=platform)
