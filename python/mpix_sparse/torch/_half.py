# SPDX-License-Identifier: BSD-3-Clause
"""Calls on 16-bit floats. They have communicators of their own, where ranks whose tensors have another type
make no call and would not be missed. So each call starts when another one has compared the types: an empty
allreduce of coordinates on the communicator of all other types, with uint16 in place of float16, and int16 of
bfloat16."""

from __future__ import annotations

from typing import Any

import numpy

from .. import _coo
from .._pending import Handle

_VALUES = {"float16": "uint16", "bfloat16": "int16"}
_INDICES = {False: "uint32", True: "int32"}  # by sparse; indices of tensors are int64

EXPLANATION = (
    "; float16 and bfloat16 are compared as uint16 and int16 of an MPIX_Sparse_allreduce_coo, "
    "and Adasum as one without elements"
)


def compare_halves(comm: Any, name: str, is_sparse: bool, count: int, op: str) -> Handle:
    """Start to compare the arguments of a call on 16-bit floats.

    Args:
        comm: the communicator of all other types.
        name: the type.
    """
    indices, values = numpy.empty(0, _INDICES[is_sparse]), numpy.empty(0, _VALUES[name])
    return _coo.iallreduce_coo(indices, values, count, op, comm=comm)
