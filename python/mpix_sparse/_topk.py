# SPDX-License-Identifier: BSD-3-Clause
"""Top-k sparsification: the largest elements of a tensor, and Deep Gradient Compression (Lin et al., ICLR
2018)."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from . import _arrays, _coo, _hints, _mpi, _types
from ._library import library

CAPACITY_MARGIN = 1.3  # for sampling errors


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


_self_comm: list[Any] = []


def _group_handle(group: Any) -> Any:
    """The handle of a group; None is a duplicate of MPI_COMM_SELF that returns errors."""
    if group is not None:
        return _mpi.communicator(group, "group")
    if not _self_comm:
        _mpi.init()
        made = _mpi.Handle()
        _mpi.check(library.MPI_Comm_dup(_mpi.constant("COMM_SELF"), ctypes.byref(made)))
        _mpi.check(library.MPI_Comm_set_errhandler(made, _mpi.constant("ERRORS_RETURN")))
        _self_comm.append(made)
    return _self_comm[0]


def _free_self_comm() -> None:
    while _self_comm:
        _mpi.check(library.MPI_Comm_free(ctypes.byref(_self_comm.pop())))


_mpi.add_finalize_hook(_free_self_comm)


def _vector(array: _arrays.Array) -> tuple[Any, Any]:
    """Count and datatype of an array, for C."""
    return ctypes.c_longlong(array.size), _types.datatype(array.type)


def _ratios(ratio: Any, sample: Any) -> tuple[Any, Any]:
    return _types.real(ratio, "ratio"), _types.real(sample, "sample")


class _Selection:
    """The output arrays of a selection: the caller's, or new ones on the device of the input."""

    def __init__(self, data: _arrays.Array, capacity: int, index_dtype: Any, out: Any) -> None:
        if out is None:
            if _types.to_integer(capacity, "capacity").value < 0:
                raise ValueError(f"capacity is {capacity}; it must be 0 or more")
            name = _types.name_of(index_dtype)
            self._arrays = tuple(
                _arrays.new_on_device_of(data, (capacity,), kind) for kind in (name, data.type)
            )
        elif isinstance(out, (tuple, list)) and len(out) == 2:
            self._arrays = tuple(out)
        else:
            raise TypeError("out must be a tuple of two arrays, of indices and of values")
        indices, values = (_arrays.writable_array(array) for array in self._arrays)
        if len(indices.shape) != 1 or len(values.shape) != 1:
            raise ValueError("out must be two arrays of one dimension")
        if values.type not in (data.type, _arrays.stored_type(data.type)):
            raise TypeError(f"out holds values of {values.type} and the array {data.type}")
        self.nnz = ctypes.c_longlong()
        capacity_arguments = _coo.index_type(indices.type), ctypes.c_longlong(min(indices.size, values.size))
        self.arguments = *capacity_arguments, indices.pointer, values.pointer, ctypes.byref(self.nnz)

    def used(self) -> tuple[Any, Any]:
        """The used part of both arrays."""
        indices, values = self._arrays
        return indices[: self.nnz.value], values[: self.nnz.value]


def topk_threshold(
    array: Any, ratio: float, *, sample: float = 0.01, seed: int = 0, group: Any = None
) -> float:
    """Find the magnitude that a given share of a tensor's elements exceed. Collective over the group; blocks.

    Args:
        array: this rank's part of the tensor, of any shape, in host or device memory, contiguous on a device;
            float32 or float64, or a 16-bit float type with the hint `element` on the group. Sizes may differ.
        ratio: the share, in (0, 1]; the same on all ranks.
        sample: share of the elements to sample; 1 finds the exact magnitude, for up to a million elements.
        seed: selects the sample.
        group: None for this process alone, or a communicator of mpi4py whose ranks each have a part of the
            tensor (tensor parallelism).

    Returns:
        The magnitude, the same on all ranks; 0 if ratio is 1.

    Raises:
        TypeError, Error: an argument is wrong. Error is raised on all ranks.
    """
    data, handle, found = _arrays.view(array).packed(), _group_handle(group), ctypes.c_double()
    _hints.require(data.type, handle)
    share = *_ratios(ratio, sample), _types.to_integer(seed, "seed", ctypes.c_int)
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
    """Select the non-zero elements whose magnitude reaches a threshold. Not collective.

    Args:
        array, group: as for topk_threshold().
        threshold: 0 or more.
        capacity: maximal number of elements; if more qualify, the largest are selected, and the first of
            equal ones. None for no limit.
        index_dtype: type of the indices: int32, uint32, int64 or uint64.
        out: two arrays of one dimension for indices and values, in the same kind of memory as the array;
            their size and type replace capacity and index_dtype. None for new arrays: NumPy's on the host,
            on a device those of the array's library, which must be PyTorch or support numpy.empty_like(),
            as CuPy does.

    Returns:
        Indices, ascending, and values, each of shape (nnz,), for allreduce_coo(). With `out`, its first nnz
        elements.

    Raises:
        TypeError, ValueError, Error: an argument is wrong.
    """
    data, handle = _arrays.view(array).packed(), _group_handle(group)
    _hints.require(data.type, handle)
    chosen = _Selection(data, data.size if capacity is None else capacity, index_dtype, out)
    call = data.pointer, *_vector(data), _types.real(threshold, "threshold"), handle
    _mpi.check(library.MPIX_Sparse_topk_select(*call, *chosen.arguments))
    return chosen.used()


def dgc_capacity(count: int, ratio: float, ranks: int = 1) -> int:
    """Capacity for the elements that a step of DGC selects from `count`. All elements that a group selects
    may be on one rank.

    Raises:
        ValueError: the ratio is not in (0, 1].
    """
    if not 0 < _types.real(ratio, "ratio").value <= 1:
        raise ValueError(f"ratio is {ratio}; it must be above 0 and at most 1")
    return min(count, math.ceil(CAPACITY_MARGIN * ratio * count * ranks) + 1)


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
    """Do one step of Deep Gradient Compression on a tensor, before its allreduce. Collective over the group;
    blocks.

    velocity = momentum * velocity + scale * gradient, residual += velocity. Then the largest elements of the
    residual are selected, by a threshold from a sample, and zeroed in the residual and, with masking, in the
    velocity. The other elements stay for later steps.

    Args:
        gradient: this rank's part of the tensor; see topk_threshold().
        velocity, residual: writable contiguous arrays of the gradient's size, type and device, without
            common memory; zeros before the first step; each step changes them.
        ratio, sample, seed, group: as for topk_threshold(); the seed should differ between steps.
        momentum: in [0, 1); the optimizer that uses the sum must have no momentum.
        scale: factor of the gradient, for clipping for example.
        masking: True to zero the velocity of selected elements, as in the paper.
        capacity: maximal number of elements; None for the ratio's share and a third more.
        index_dtype, out: as for topk_select().

    Returns:
        As topk_select().

    Raises:
        TypeError, ValueError: an argument is wrong. Only on this rank.
        Error: the call failed, on all ranks; velocity and residual have not changed.
    """
    data = _arrays.view(gradient).packed()
    kept = _arrays.writable_array(velocity, name="velocity")
    left = _arrays.writable_array(residual, name="residual")
    for name, state in ("velocity", kept), ("residual", left):
        if (state.size, state.type) != (data.size, data.type):
            raise ValueError(
                f"{name} has {state.size} x {state.type}, and the gradient {data.size} x {data.type}"
            )
    handle = _group_handle(group)
    _hints.require(data.type, handle)
    if capacity is None:
        capacity = dgc_capacity(data.size, ratio, _mpi.size(handle))
    chosen = _Selection(data, capacity, index_dtype, out)
    factors = *_ratios(ratio, sample), _types.real(momentum, "momentum"), _types.real(scale, "scale")
    seed = _types.to_integer(seed, "seed", ctypes.c_int).value
    how = CDgc(*(factor.value for factor in factors), seed, bool(masking))
    arrays = data.pointer, kept.pointer, left.pointer, *_vector(data)
    _mpi.check(library.MPIX_Sparse_dgc_step(*arrays, ctypes.byref(how), handle, *chosen.arguments))
    return chosen.used()
