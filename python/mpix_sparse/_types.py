# SPDX-License-Identifier: BSD-3-Clause
"""Types of elements, by NumPy's names, and reductions."""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any

import numpy

from . import _mpi
from ._library import library

# Name of a type → name of its MPI type, its bytes. 16-bit floats are sent as integers, with the hint element.
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
HALVES = {"float16": "fp16", "bfloat16": "bf16"}
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
_NUMBER_OPS = ("sum", "max", "min", "prod")
_RESTRICTED_OPS = {
    "bool": ("land", "lor", "lxor"),
    "float16": _NUMBER_OPS,
    "bfloat16": _NUMBER_OPS,
    "float32": _NUMBER_OPS,
    "float64": _NUMBER_OPS,
    "complex64": ("sum", "prod"),
    "complex128": ("sum", "prod"),
}


def to_integer(number: Any, name: str, kind: Any = ctypes.c_longlong) -> Any:
    """Convert an argument to a C integer.

    Raises:
        TypeError: the argument is not an integer.
        ValueError: it does not fit the C type.
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
    """Convert an argument to a C double.

    Raises:
        TypeError: the argument is not a number.
    """
    try:
        return ctypes.c_double(number)
    except TypeError:
        raise TypeError(f"{name} is {number!r}; it must be a number") from None


def item_size(name: str) -> int:
    """Bytes of one number."""
    return _TYPES[name][1]


def is_known(name: str) -> bool:
    """True if a type can be reduced."""
    return name in _TYPES


def refuse_unknown(name: str) -> None:
    """Raise TypeError unless a type can be reduced."""
    if not is_known(name):
        raise TypeError(f"elements of type {name} cannot be reduced; those that can are {', '.join(_TYPES)}")


@functools.lru_cache(maxsize=None)
def datatype(name: str, row: int = 1) -> Any:
    """The MPI datatype of an element: a number, or a row of numbers. Derived datatypes live until finalize().

    Raises:
        TypeError: the type is unknown, or row is not an integer.
        ValueError: the row is too long for MPI.
    """
    refuse_unknown(name)
    basic = _mpi.constant(_TYPES[name][0])
    if row == 1:
        return basic
    made = _mpi.Handle()
    _mpi.check(library.MPI_Type_contiguous(to_integer(row, "row", ctypes.c_int), basic, ctypes.byref(made)))
    _mpi.check(library.MPI_Type_commit(ctypes.byref(made)))
    _row_types.append(made)
    return made


_row_types: list[Any] = []


def _free_row_types() -> None:
    datatype.cache_clear()
    while _row_types:
        _mpi.check(library.MPI_Type_free(ctypes.byref(_row_types.pop())))


_mpi.add_finalize_hook(_free_row_types)


@functools.lru_cache(maxsize=None)
def operation(name: str, dtype: str = "") -> Any:
    """The MPI op of a name: sum, max, min, prod, land, band, lor, bor, lxor or bxor.

    Raises:
        ValueError: the name is unknown.
        TypeError: the op is not defined for the type.
    """
    if name not in _OPS:
        raise ValueError(f"op is {name!r}; it must be one of {', '.join(_OPS)}")
    problem = _op_problem(name, dtype)
    if problem:
        raise TypeError(problem)
    return _mpi.constant(_OPS[name])


def _op_problem(name: str, dtype: str) -> str:
    """The error if an op is not defined for a type; empty if it is."""
    allowed = _RESTRICTED_OPS.get(dtype, _OPS)
    return "" if name in allowed else f"op {name!r} is not for {dtype}; {', '.join(allowed)} are"


def operation_and_problem(name: str, dtype: str) -> tuple[Any, str]:
    """The MPI op of a name, and the error if the op is not defined for the type. Then the op is another one,
    for a call that fails on all ranks for another reason.

    Raises:
        ValueError: the name is unknown.
    """
    problem = _op_problem(name, dtype) if name in _OPS else ""
    return operation(_RESTRICTED_OPS[dtype][0] if problem else name), problem


def hints(name: str) -> dict[str, str]:
    """The hints that a type needs: element for 16-bit floats, which are sent as integers."""
    return {"element": HALVES[name]} if name in HALVES else {}


def name_of(dtype: Any) -> str:
    """The name of a type, given as a name or as a NumPy type.

    Raises:
        TypeError: the type is none that NumPy knows, or None.
    """
    if dtype is None:
        raise TypeError("a type is needed, not None")
    return dtype if isinstance(dtype, str) and dtype in _TYPES else numpy.dtype(dtype).name
