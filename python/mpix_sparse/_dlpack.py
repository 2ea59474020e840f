# SPDX-License-Identifier: BSD-3-Clause
"""Import and export of arrays through DLPack, on any device. Structures as in dlpack.h, version 0.x."""

from __future__ import annotations

import ctypes
import re
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


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


CUDA = 2  # kDLCUDA
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_BOOL = 6
_HOST_KINDS = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _name(tensor: _Tensor) -> str:
    if tensor.code == _BOOL:
        return "bool"
    kind = _CODES.get(tensor.code, f"code {tensor.code} of ")
    return f"{kind}{tensor.bits}" + (f"x{tensor.lanes}" if tensor.lanes != 1 else "")


def describe(tensor: Any) -> tuple[Any, int, str, tuple[int, ...], tuple[int, ...] | None, bool]:
    """Describe an object with __dlpack__: owner, address, type, shape, strides in elements or None, and True
    for device memory.

    The owner is the capsule, which releases the tensor when it is deleted.
    """
    capsule = tensor.__dlpack__()
    inside = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(inside.shape[: inside.ndim])
    strides = tuple(inside.strides[: inside.ndim]) if inside.strides else None
    address = (inside.data or 0) + inside.byte_offset
    return capsule, address, _name(inside), shape, strides, inside.device_type not in _HOST_KINDS


_exported: dict[int, Any] = {}  # address of an exported tensor → the objects that it needs alive


@_Deleter
def _delete(address: int) -> None:
    _exported.pop(address, None)


_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_inside = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    """Destructor of a capsule. A consumer that took the tensor renamed the capsule and owns the tensor."""
    if _is_named(capsule, b"dltensor"):
        _delete(_inside(capsule, b"dltensor"))


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
for _callback in _delete, _destroy:  # exported tensors may outlive this module
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


def _type(name: str) -> tuple[int, int, int]:
    """Code, bits and lanes of a type."""
    if name == "bool":
        return _BOOL, 8, 1
    kind, bits = re.fullmatch("([a-z]+)([0-9]+)", name).groups()  # type: ignore[union-attr]
    return {known: code for code, known in _CODES.items()}[kind], int(bits), 1


def export(owner: Any, address: int, name: str, shape: tuple[int, ...], device: tuple[int, int]) -> Any:
    """A capsule for contiguous memory on device (kind, number). It keeps the owner alive."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = _Tensor(address, *device, len(shape), *_type(name), extents, None, 0)
    managed = _Managed(tensor, None, _delete)
    _exported[ctypes.addressof(managed)] = managed, extents, owner
    return _capsule(ctypes.addressof(managed), b"dltensor", ctypes.cast(_destroy, ctypes.c_void_p))


_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def cuda_device(address: int) -> tuple[int, int]:
    """The CUDA device (kind, number) of an address, from the driver, which any device memory implies."""
    number = ctypes.c_int()
    query = ctypes.byref(number), ctypes.c_int(_ORDINAL), ctypes.c_ulonglong(address)
    error = ctypes.CDLL("libcuda.so.1").cuPointerGetAttribute(*query)
    if error:
        raise BufferError(f"CUDA does not tell the device of {address:#x}: error {error}")
    return CUDA, number.value
