# SPDX-License-Identifier: BSD-3-Clause
"""Top-k sparsification: the largest elements of a tensor, and Deep Gradient Compression (Lin et al., ICLR
2018)."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from . import _arrays, _coo, _hints, _mpi, _types
from ._library import library

ROOM = 1.3  # for what sampling errs by


class CDgc(ctypes.Structure):
    """MPIX_Sparse_dgc_t."""

    _fields_ = [
        ("ratio", ctypes.c_double),
        ("sample", ctypes.c_double),
        ("momentum", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("seed", ctypes.c_int),
        ("masking", ctypes.c_int),
    ]


_alone: list[Any] = []


def _group(group: Any) -> Any:
    """The handle of a group: None is this process alone, on a communicator that returns errors."""
    if group is not None:
        return _mpi.communicator(group, "group")
    if not _alone:
        _mpi.init()
        made = _mpi.Handle()
        _mpi.check(library.MPI_Comm_dup(_mpi.constant("COMM_SELF"), ctypes.byref(made)))
        _mpi.check(library.MPI_Comm_set_errhandler(made, _mpi.constant("ERRORS_RETURN")))
        _alone.append(made)
    return _alone[0]


def _free_alone() -> None:
    while _alone:
        _mpi.check(library.MPI_Comm_free(ctypes.byref(_alone.pop())))


_mpi.before_end(_free_alone)


def _vector(array: _arrays.Array) -> tuple[Any, Any]:
    """The number and type of an array's elements, for C."""
    return ctypes.c_longlong(array.size), _types.datatype(array.type)


def _share(ratio: Any, sample: Any) -> tuple[Any, Any]:
    return _types.real(ratio, "ratio"), _types.real(sample, "sample")


class _Chosen:
    """Where selected elements go: arrays of the caller's, or new ones beside those that they are from."""

    def __init__(self, data: _arrays.Array, capacity: int, index_dtype: Any, out: Any) -> None:
        if out is None:
            if _types.whole(capacity, "capacity").value < 0:
                raise ValueError(f"capacity is {capacity}; it must be 0 or more")
            name = _types.name_of(index_dtype)
            self._arrays = tuple(_arrays.beside(data, (capacity,), kind) for kind in (name, data.type))
        else:
            self._arrays = tuple(out)
        indices, values = (_arrays.target(array) for array in self._arrays)
        if len(indices.shape) != 1 or len(values.shape) != 1:
            raise ValueError("out must be two arrays of one dimension")
        if values.type not in (data.type, _arrays.stored_type(data.type)):
            raise TypeError(f"out holds values of {values.type} and the array {data.type}")
        self.nnz = ctypes.c_longlong()
        room = _coo.index_type(indices.type), ctypes.c_longlong(min(indices.size, values.size))
        self.arguments = *room, indices.pointer, values.pointer, ctypes.byref(self.nnz)

    def taken(self) -> tuple[Any, Any]:
        """What of it was used."""
        indices, values = self._arrays
        return indices[: self.nnz.value], values[: self.nnz.value]


def topk_threshold(
    array: Any, ratio: float, *, sample: float = 0.01, seed: int = 0, group: Any = None
) -> float:
    """Find the magnitude above which a share of a tensor's elements is. Collective over the group; blocks.

    Args:
        array: this rank's part of the tensor, contiguous, of any shape, on a device or not; float32 or
            float64, or one of 16 bits under the hint `element` on the group. Parts may differ in size.
        ratio: the share, in (0, 1]; the same on all ranks.
        sample: share of the elements to look at; 1 finds the exact magnitude, up to a million elements.
        seed: which elements these are.
        group: None for this process alone, or a communicator of mpi4py whose ranks have a part each (tensor
            parallelism).

    Returns:
        The magnitude, the same on all ranks; 0 where ratio is 1.

    Raises:
        TypeError, Error: an argument is wrong; the latter on all ranks.
    """
    data, handle, found = _arrays.view(array), _group(group), ctypes.c_double()
    _hints.require(data.type, handle)
    share = *_share(ratio, sample), _types.whole(seed, "seed", ctypes.c_int)
    call = data.pointer, *_vector(data), *share, handle, ctypes.byref(found)
    _mpi.check(library.MPIX_Sparse_topk_threshold(*call))
    return found.value


def topk_select(
    array: Any,
    threshold: float,
    *,
    capacity: int | None = None,
    index_dtype: Any = "int64",
    group: Any = None,
    out: tuple[Any, Any] | None = None,
) -> tuple[Any, Any]:
    """Select the elements that are not zero and whose magnitude is not below a threshold. Not collective.

    Args:
        array, group: as of topk_threshold().
        threshold: not negative.
        capacity: most elements to select, the largest then, of equal ones the first; None for no limit.
        index_dtype: of the indices: int32, uint32, int64 or uint64.
        out: arrays of one dimension for indices and values, in memory of the array's kind, whose size and
            type then say what capacity and index_dtype would. None for new ones: of NumPy for an array of
            the host; for one of a device of its own library, which must be PyTorch, or one that
            numpy.empty_like() asks for an array, as CuPy.

    Returns:
        Their indices, ascending, and values, each of shape (nnz,), as allreduce_coo() takes them: the
        beginnings of `out` where it is given.

    Raises:
        TypeError, ValueError, Error: an argument is wrong.
    """
    data, handle = _arrays.view(array), _group(group)
    _hints.require(data.type, handle)
    chosen = _Chosen(data, data.size if capacity is None else capacity, index_dtype, out)
    call = data.pointer, *_vector(data), _types.real(threshold, "threshold"), handle
    _mpi.check(library.MPIX_Sparse_topk_select(*call, *chosen.arguments))
    return chosen.taken()


def dgc_capacity(count: int, ratio: float, ranks: int = 1) -> int:
    """Room for the elements that a step of DGC selects of `count`, where those of all ranks of a group may
    be on one.

    Raises:
        ValueError: the ratio is none.
    """
    if not 0 < _types.real(ratio, "ratio").value <= 1:
        raise ValueError(f"ratio is {ratio}; it must be above 0 and at most 1")
    return min(count, math.ceil(ROOM * ratio * count * ranks) + 1)


def dgc_step(
    gradient: Any,
    velocity: Any,
    residual: Any,
    ratio: float,
    *,
    momentum: float = 0.9,
    scale: float = 1.0,
    sample: float = 0.01,
    seed: int = 0,
    masking: bool = False,
    capacity: int | None = None,
    index_dtype: Any = "int64",
    group: Any = None,
    out: tuple[Any, Any] | None = None,
) -> tuple[Any, Any]:
    """One step of Deep Gradient Compression on a tensor, before its allreduce. Collective over the group;
    blocks.

    velocity = momentum * velocity + scale * gradient, residual += velocity; the residual's largest elements
    are selected, by a threshold from a sample, and zeroed in the residual and, with masking, in the
    velocity. The rest stays for later steps.

    Args:
        gradient: this rank's part of the tensor; see topk_threshold().
        velocity, residual: of its size and type, where it is, writable, each in memory of its own; zeros
            before the first step, changed in each.
        ratio, sample, seed, group: as of topk_threshold(); the seed should be another in each step.
        momentum: in [0, 1); the optimizer that takes the sum is to have none.
        scale: what the gradient is multiplied by, such as by clipping.
        masking: whether what is selected loses its velocity, as in the paper.
        capacity: most elements to select; None for what the ratio asks for and a third more.
        index_dtype, out: as of topk_select().

    Returns:
        Indices, ascending, and values, as of topk_select().

    Raises:
        TypeError, ValueError: an argument is wrong. Only this rank learns of it.
        Error: the library's sentence, on all ranks; velocity and residual are as they were.
    """
    data, kept, left = _arrays.view(gradient), _arrays.target(velocity), _arrays.target(residual)
    for name, state in ("velocity", kept), ("residual", left):
        if (state.size, state.type) != (data.size, data.type):
            raise ValueError(
                f"{name} has {state.size} x {state.type}, and the gradient {data.size} x {data.type}"
            )
    handle = _group(group)
    _hints.require(data.type, handle)
    if capacity is None:
        capacity = dgc_capacity(data.size, ratio, _mpi.size(handle))
    chosen = _Chosen(data, capacity, index_dtype, out)
    factors = *_share(ratio, sample), _types.real(momentum, "momentum"), _types.real(scale, "scale")
    seed = _types.whole(seed, "seed", ctypes.c_int).value
    how = CDgc(*(factor.value for factor in factors), seed, bool(masking))
    arrays = data.pointer, kept.pointer, left.pointer, *_vector(data)
    _mpi.check(library.MPIX_Sparse_dgc_step(*arrays, ctypes.byref(how), handle, *chosen.arguments))
    return chosen.taken()
