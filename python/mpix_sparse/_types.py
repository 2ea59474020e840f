# SPDX-License-Identifier: BSD-3-Clause
"""Types of elements, by the names that NumPy gives them, and reductions."""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any

import numpy

from . import _mpi
from ._library import library

# A type's name, that of its MPI type, and its bytes. Floats of 16 bits travel as integers, under a hint.
_TYPES = {
    "bool": ("C_BOOL", 1),
    "int8": ("INT8_T", 1),
    "int16": ("INT16_T", 2),
    "int32": ("INT32_T", 4),
    "int64": ("INT64_T", 8),
    "uint8": ("UINT8_T", 1),
    "uint16": ("UINT16_T", 2),
    "uint32": ("UINT32_T", 4),
    "uint64": ("UINT64_T", 8),
    "float16": ("UINT16_T", 2),
    "bfloat16": ("UINT16_T", 2),
    "float32": ("FLOAT", 4),
    "float64": ("DOUBLE", 8),
    "complex64": ("C_FLOAT_COMPLEX", 8),
    "complex128": ("C_DOUBLE_COMPLEX", 16),
}
_HALVES = {"float16": "fp16", "bfloat16": "bf16"}
_OPS = {
    "sum": "SUM",
    "max": "MAX",
    "min": "MIN",
    "prod": "PROD",
    "land": "LAND",
    "band": "BAND",
    "lor": "LOR",
    "bor": "BOR",
    "lxor": "LXOR",
    "bxor": "BXOR",
}
_FEW_OPS = {
    "bool": ("land", "lor", "lxor"),
    "complex64": ("sum", "prod"),
    "complex128": ("sum", "prod"),
}


def whole(number: Any, name: str, kind: Any = ctypes.c_longlong) -> Any:
    """The whole number that an argument is, as C takes it.

    Raises:
        TypeError: it is none.
        ValueError: C's has too few bits for it.
    """
    try:
        wanted = operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is {number!r}; it must be a whole number") from None
    made = kind(wanted)
    if made.value != wanted:
        raise ValueError(f"{name} is {wanted}; it must fit {8 * ctypes.sizeof(kind)} bits")
    return made


def real(number: Any, name: str) -> ctypes.c_double:
    """The number that an argument is, as C takes it.

    Raises:
        TypeError: it is none.
    """
    try:
        return ctypes.c_double(number)
    except TypeError:
        raise TypeError(f"{name} is {number!r}; it must be a number") from None


def item_size(name: str) -> int:
    """Bytes of a number of a type."""
    return _TYPES[name][1]


def known(name: str) -> bool:
    """Whether a type can be reduced."""
    return name in _TYPES


@functools.lru_cache(maxsize=None)
def datatype(name: str, row: int = 1) -> Any:
    """The MPI datatype of an element: a number, or a row of them.

    Raises:
        TypeError: there is no such type, or row is no whole number.
        ValueError: MPI cannot take so long a row.
    """
    if name not in _TYPES:
        raise TypeError(f"elements of type {name} cannot be reduced; those that can are {', '.join(_TYPES)}")
    basic = _mpi.constant(_TYPES[name][0])
    if row == 1:
        return basic
    made = _mpi.Handle()
    _mpi.check(library.MPI_Type_contiguous(whole(row, "row", ctypes.c_int), basic, ctypes.byref(made)))
    _mpi.check(library.MPI_Type_commit(ctypes.byref(made)))
    _rows.append(made)
    return made


_rows: list[Any] = []


def _free_rows() -> None:
    datatype.cache_clear()
    while _rows:
        _mpi.check(library.MPI_Type_free(ctypes.byref(_rows.pop())))


_mpi.before_end(_free_rows)


def operation(name: str, dtype: str = "") -> Any:
    """The MPI op of a name: sum, max, min, prod, land, band, lor, bor, lxor or bxor.

    Raises:
        ValueError: there is no such op.
        TypeError: it is not for numbers of a type.
    """
    if name not in _OPS:
        raise ValueError(f"op is {name!r}; it must be one of {', '.join(_OPS)}")
    allowed = _FEW_OPS.get(dtype, _OPS)
    if name not in allowed:
        raise TypeError(f"op {name!r} is not for {dtype}; {', '.join(allowed)} are")
    return _mpi.constant(_OPS[name])


def hints(name: str) -> dict[str, str]:
    """The hints that a type needs: what integers of 2 bytes stand for."""
    return {"element": _HALVES[name]} if name in _HALVES else {}


def name_of(dtype: Any) -> str:
    """The name of a type that is given as a name or as NumPy takes them."""
    return dtype if isinstance(dtype, str) and dtype in _TYPES else numpy.dtype(dtype).name
