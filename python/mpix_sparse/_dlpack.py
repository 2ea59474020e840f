# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of other libraries through DLPack, on any device. The structures are those of dlpack.h, version
0.x."""

from __future__ import annotations

import ctypes
from typing import Any


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_BOOL = 6
_HOST_KINDS = (1, 3, 11)  # the CPU, and memory that CUDA or ROCm pinned there

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _name(tensor: _Tensor) -> str:
    if tensor.code == _BOOL:
        return "bool"
    kind = _CODES.get(tensor.code, f"code {tensor.code} of ")
    return f"{kind}{tensor.bits}" + (f"x{tensor.lanes}" if tensor.lanes != 1 else "")


def describe(tensor: Any) -> tuple[Any, int, str, tuple[int, ...], tuple[int, ...] | None, bool]:
    """What an object with __dlpack__ holds: owner, address, type, shape, strides in numbers or None, on a
    device.

    The owner is the capsule, which gives the tensor back when it is dropped.
    """
    capsule = tensor.__dlpack__()
    inside = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(inside.shape[: inside.ndim])
    strides = tuple(inside.strides[: inside.ndim]) if inside.strides else None
    address = (inside.data or 0) + inside.byte_offset
    return capsule, address, _name(inside), shape, strides, inside.device_type not in _HOST_KINDS
