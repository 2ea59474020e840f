# SPDX-License-Identifier: BSD-3-Clause
"""Profiles of tensors, and reports on calls. The structures are those of mpix_sparse.h."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from . import _arrays, _hints, _mpi, _problems, _refusal, _types
from ._collective import collective
from ._library import library

_GAMMA_MAX = 32
_NAME_MAX = 32
_REASON_MAX = 160


class CProfile(ctypes.Structure):
    """MPIX_Sparse_profile_t."""

    _fields_ = [
        ("count", ctypes.c_longlong),
        ("ranks", ctypes.c_int),
        ("density", ctypes.c_double),
        ("density_max", ctypes.c_double),
        ("density_out", ctypes.c_double),
        ("overlap", ctypes.c_double),
        ("skewness", ctypes.c_double),
        ("gammas", ctypes.c_int),
        ("gamma_ranks", ctypes.c_int * _GAMMA_MAX),
        ("gamma", ctypes.c_double * _GAMMA_MAX),
        ("sampled", ctypes.c_longlong),
    ]


class CReport(ctypes.Structure):
    """MPIX_Sparse_report_t."""

    _fields_ = [
        ("scheme", ctypes.c_char * _NAME_MAX),
        ("choice", ctypes.c_char * _NAME_MAX),
        ("reason", ctypes.c_char * _REASON_MAX),
        ("push_wire", ctypes.c_char * _NAME_MAX),
        ("pull_wire", ctypes.c_char * _NAME_MAX),
        ("partition", ctypes.c_char * _NAME_MAX),
        ("grain", ctypes.c_int),
        ("ranks", ctypes.c_int),
        ("nodes", ctypes.c_int),
        ("columns", ctypes.c_int),
        ("threads", ctypes.c_int),
        ("count", ctypes.c_longlong),
        ("row", ctypes.c_longlong),
        ("nnz_in", ctypes.c_longlong),
        ("nnz_in_max", ctypes.c_longlong),
        ("nnz_in_sum", ctypes.c_longlong),
        ("nnz_out", ctypes.c_longlong),
        ("bytes_sent", ctypes.c_longlong),
        ("bytes_received", ctypes.c_longlong),
        ("header_bytes_sent", ctypes.c_longlong),
        ("messages_sent", ctypes.c_longlong),
        ("messages_relayed", ctypes.c_longlong),
        ("hash_reruns", ctypes.c_longlong),
        ("serial_share", ctypes.c_double),
        ("push_imbalance", ctypes.c_double),
        ("pull_imbalance", ctypes.c_double),
        ("predicted_seconds", ctypes.c_double),
        ("measured_seconds", ctypes.c_double),
    ]


@dataclass(frozen=True)
class Profile:
    """How sparse a tensor is over all ranks: the characteristics C1 to C3 of the Zen paper.

    Attributes:
        count: elements of the vector.
        ranks: ranks of the communicator.
        density: share of the elements that are present, mean over ranks.
        density_max: largest density of any rank.
        density_out: share of the elements that are present on at least one rank.
        overlap: C1, elements present on both ranks / elements present on the rank with fewer, mean over
            pairs of ranks.
        skewness: C3, density of the densest of `ranks` equal parts / density, mean over ranks.
        gamma: C2, for 2, 4, 8 … and all ranks: density of their union / density.
        sampled: elements examined; equal to count if the figures are exact.
    """

    count: int
    ranks: int
    density: float
    density_max: float
    density_out: float
    overlap: float
    skewness: float
    gamma: dict[int, float]
    sampled: int


@dataclass(frozen=True)
class Report:
    """A report on the last call on a communicator, from this rank: the fields of MPIX_Sparse_report_t, see
    MPIX_Sparse_get_report(3). Seconds and counts that were not measured are -1."""

    scheme: str
    choice: str
    reason: str
    push_wire: str
    pull_wire: str
    partition: str
    grain: int
    ranks: int
    nodes: int
    columns: int
    threads: int
    count: int
    row: int
    nnz_in: int
    nnz_in_max: int
    nnz_in_sum: int
    nnz_out: int
    bytes_sent: int
    bytes_received: int
    header_bytes_sent: int
    messages_sent: int
    messages_relayed: int
    hash_reruns: int
    serial_share: float
    push_imbalance: float
    pull_imbalance: float
    predicted_seconds: float
    measured_seconds: float


def _arguments(array: Any, comm: Any, row: int) -> tuple[Any, tuple[Any, ...]]:
    """The array, and the first arguments of the C function."""
    data, handle = _arrays.view(array).packed(), _hints.communicator(comm)
    _hints.require(data.type, handle)
    count, datatype = ctypes.c_longlong(_arrays.rows(data, row)), _types.datatype(data.type, row)
    return data, (data.pointer, count, datatype, handle)


@collective(_refusal.refuse_call)
def profile(array: Any, *, comm: Any = None, row: int = 1) -> Profile:
    """Measure how sparse a dense array is. Collective over comm.

    Args:
        array: as for allreduce(); the same size and type on all ranks.
        comm: None for MPI_COMM_WORLD, or a communicator of mpi4py.
        row: numbers per element.

    Returns:
        The profile, the same on all ranks.

    Raises:
        TypeError, ValueError, Error: as for allreduce().
    """
    keep, call = _refusal.prepare(_refusal.refuse_call, comm, _arguments, array, comm, row)
    found = CProfile()
    _problems.check(library.MPIX_Sparse_profile(*call, ctypes.byref(found)), "", call[-1])
    fields = {name: getattr(found, name) for name in Profile.__dataclass_fields__}
    fields["gamma"] = dict(zip(found.gamma_ranks[: found.gammas], found.gamma[: found.gammas]))
    return Profile(**fields)


@collective(_refusal.refuse_call)
def barrier(comm: Any = None) -> None:
    """Wait for all ranks of a communicator, and for this rank's calls in flight there. Collective over comm.

    Raises:
        Error: another rank makes another call.
    """
    # The check of arguments waits for all ranks. The C library has no barrier; this profiles no elements.
    handle, number, found = _hints.communicator(comm), _mpi.constant("INT32_T"), CProfile()
    call = None, ctypes.c_longlong(0), number, handle, ctypes.byref(found)
    _problems.check(library.MPIX_Sparse_profile(*call), "", handle)


def report(comm: Any = None) -> Report:
    """Report on the last call that has completed on a communicator. Not collective.

    Raises:
        Error: no call has completed there.
    """
    found = CReport()
    _mpi.check(library.MPIX_Sparse_get_report(_mpi.communicator(comm), ctypes.byref(found)))
    values = [getattr(found, name) for name, _ in found._fields_]
    return Report(*(value.decode() if isinstance(value, bytes) else value for value in values))
