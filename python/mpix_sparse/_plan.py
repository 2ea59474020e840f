# SPDX-License-Identifier: BSD-3-Clause
"""Plans: the same tensor again and again, such as a layer's gradient. What is learnt of it is kept, and once
that is settled a call agrees on nothing but what its messages carry."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Sequence

from . import _coo, _dense, _mpi, _types
from ._flight import Flight, Handle
from ._library import library


class _Plan:
    """What both kinds of plans have: the C plan, which lives as long as this object or a call of it."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()

    def free(self) -> None:
        """Free the plan now, and not when it is dropped. Not collective.

        Raises:
            Error: a call of it is not complete.
        """
        _mpi.check(library.MPIX_Sparse_plan_free(ctypes.byref(self.handle)))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.free()

    def __del__(self) -> None:
        if getattr(self, "handle", None) and _mpi.is_initialized():
            library.MPIX_Sparse_plan_free(ctypes.byref(self.handle))


class Plan(_Plan):
    """A plan for allreduce(). Making one is collective over comm, in the order of other calls there.

    Args:
        array, op, comm, out, row: as of allreduce(), not of scipy.sparse; the same memory in every call.
        hints: as of set_info(), before which they go.

    Raises:
        TypeError, ValueError, Error: as allreduce().
    """

    def __init__(
        self,
        array: Any,
        op: str = "sum",
        *,
        comm: Any = None,
        out: Any = None,
        row: int = 1,
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._call = _dense.Dense(array, op, comm, out, row)
        with _mpi.Info({**_types.hints(self._call.type), **(hints or {})}) as info:
            plan = ctypes.byref(self.handle)
            _mpi.check(library.MPIX_Sparse_allreduce_init(*self._call.buffers, info, plan))

    def flight(self) -> Flight:
        """A call of the plan, not started yet."""
        return Flight(self, lambda: self._call.outcome)

    def start(self) -> Handle:
        """Start a call. Collective; one at a time. The handle's wait() gives what allreduce() returns.

        Raises:
            Error: the plan has been freed, or its last call is not complete.
        """
        flight = self.flight()
        return flight.begin(library.MPIX_Sparse_plan_start(self.handle, ctypes.byref(flight.request)))


class CooPlan(_Plan):
    """A plan for allreduce_coo(), whose elements come with each call. Making one is collective over comm.

    Args:
        count, op, comm: as of allreduce_coo().
        dtype: the type of the values to come, as a name or of NumPy; "bfloat16" too.
        row: numbers in an element.
        index_dtype: the type of the indices to come.
        hints: as of set_info(), before which they go.

    Raises:
        TypeError, ValueError, Error: as allreduce_coo().
    """

    def __init__(
        self,
        count: int,
        dtype: Any,
        op: str = "sum",
        *,
        comm: Any = None,
        row: int = 1,
        index_dtype: Any = "int64",
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.count, self.row = count, row
        self.type, self.index_type = _types.name_of(dtype), _types.name_of(index_dtype)
        handle, operation = _mpi.communicator(comm), _types.operation(op)
        indextype, datatype = _coo.index_type(self.index_type), _types.datatype(self.type, row)
        tensor = indextype, _types.whole(count, "count"), datatype, operation, handle
        with _mpi.Info({**_types.hints(self.type), **(hints or {})}) as info:
            _mpi.check(library.MPIX_Sparse_allreduce_coo_init(*tensor, info, ctypes.byref(self.handle)))

    def start(self, indices: Any, values: Any, *, reuse: _coo.Result | None = None) -> Handle:
        """Start a call. Collective; one at a time. The handle's wait() gives a Result.

        Args:
            indices, values, reuse: as of allreduce_coo(), of the plan's types and row.

        Raises:
            BufferError: the arrays of `reuse` are still in use. Only this rank learns of it.
            Error: the plan has been freed, or its last call is not complete.
        """
        elements = _coo.Elements(indices, values)
        elements.wrong = elements.wrong or self._find_wrong(elements)
        result = _coo.outcome_of(elements, self.count, reuse)
        flight = Flight((self, elements, result), lambda: result, elements.wrong)
        outputs = ctypes.byref(result.handle), ctypes.byref(flight.request)
        return flight.begin(library.MPIX_Sparse_plan_start_coo(self.handle, *elements.pointers, *outputs))

    def _find_wrong(self, elements: _coo.Elements) -> str:
        if elements.values.type != self.type or elements.row != self.row:
            return f"values are {elements.row} x {elements.values.type}, the plan's {self.row} x {self.type}"
        if elements.indices.type != self.index_type:
            return f"indices are {elements.indices.type}, and the plan's {self.index_type}"
        return ""


def plan_start_all(plans: Sequence[Plan]) -> list[Handle]:
    """Start a call of each of several plans, such as those of a model's layers. Collective: all ranks name
    the same plans in the same order. Small ones of one communicator, type and op travel as one vector.

    Returns:
        A handle for each; those of plans that travel together complete together.

    Raises:
        TypeError: one is no Plan. Only this rank learns of it.
        Error: one cannot be started; then none is.
    """
    for plan in plans:
        if not isinstance(plan, Plan):
            raise TypeError(f"plan_start_all() takes plans of dense arrays, Plan, not {type(plan).__name__}")
    flights = [plan.flight() for plan in plans]
    handles = (ctypes.c_void_p * len(plans))(*(plan.handle.value for plan in plans))
    requests = (_mpi.Handle * len(plans))(*(flight.request.value for flight in flights))
    _mpi.check(library.MPIX_Sparse_plan_start_all(ctypes.c_int(len(plans)), handles, requests))
    for flight, request in zip(flights, requests):
        flight.request = _mpi.Handle(request)
    return [flight.begin(0) for flight in flights]
