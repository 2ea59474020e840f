# SPDX-License-Identifier: BSD-3-Clause
"""Plans: persistent calls on one tensor, such as a layer's gradient. A plan keeps measurements of its
tensor. All starts are checked on all ranks, unless the hint check_starts is off: then starts make no check
once the choice of a scheme is settled."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Mapping, Sequence

from . import _coo, _counts, _dense, _hints, _mpi, _refusal, _types
from ._collective import collective
from ._error import Error
from ._pending import PendingCall, Handle, finish_abandoned
from ._library import library


class _Plan:
    """Base of both kinds of plans: owns the C plan, which lives until free() or the end of the last call."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        self._last: PendingCall | None = None  # the last call that has started
        self._comm: Any = None
        self._checks = True  # the ranks compare each start, so that a refusal meets one of their calls

    def _begin_or_refuse(self, pending: PendingCall, code: int) -> Handle:
        """The handle of a call, by the error code of its start. An error, which only this rank knows, makes
        the call of the other ranks fail too."""
        if code == 0:
            self._last = pending
            return pending.begin(code)
        error = Error(_mpi.error_string(code), code)
        if self._checks:
            _refusal.refuse_start(error, self._comm)
        raise error

    def free(self) -> None:
        """Free the plan now instead of when the object is deleted. Not collective, unless the handle of the
        last call was dropped: then this waits for that call.

        Raises:
            Error: a call of the plan is not complete.
        """
        finish_abandoned(self._last)
        plan = ctypes.c_void_p(self.handle.value)
        _mpi.check(library.MPIX_Sparse_plan_free(ctypes.byref(self.handle)))
        _counts.unregister_plan(plan)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.free()

    def __del__(self) -> None:
        if getattr(self, "handle", None) and _mpi.is_initialized():
            _counts.unregister_plan(self.handle)
            library.MPIX_Sparse_plan_free(ctypes.byref(self.handle))


class Plan(_Plan):
    """A plan for allreduce(). Its creation is collective over comm, in the order of other calls there.

    Args:
        array, op, comm, out, row: as for allreduce(), except scipy.sparse; every call uses the same memory.
        hints: as for set_info(); they take precedence over the communicator's.

    Raises:
        TypeError, ValueError, Error: as for allreduce().
    """

    @collective(_refusal.refuse_call)
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
        given = array, op, comm, out, row
        self._call = _refusal.prepare(_refusal.refuse_call, comm, _dense.DenseArguments, *given)
        how = self._call.comm, self._call.type, hints
        made = _refusal.prepare(_refusal.refuse_call, comm, _hints.info_of_plan, *how)
        with made as info:
            plan = ctypes.byref(self.handle)
            code = library.MPIX_Sparse_allreduce_init(*self._call.buffers, info, plan)
        made.check(code, self._call.comm)
        self._comm, self._checks = self._call.comm, _hints.checks_starts(hints)
        _counts.register_plan(self.handle, self._comm)

    def pending(self) -> PendingCall:
        """A new call of the plan, not started."""
        self._call.copy_again()
        finish_abandoned(self._last)
        return PendingCall(self, self._call.finish)

    @collective(_refusal.refuse_start)
    def start(self) -> Handle:
        """Start a call. Collective; one call at a time. The handle's wait() returns what allreduce() returns.

        Raises:
            Error: the plan has been freed, or its last call is not complete.
        """
        pending = self.pending()
        code = library.MPIX_Sparse_plan_start(self.handle, ctypes.byref(pending.request))
        return self._begin_or_refuse(pending, code)


class CooPlan(_Plan):
    """A plan for allreduce_coo(); each call has its own elements. Its creation is collective over comm.

    Args:
        count, op, comm: as for allreduce_coo().
        dtype: type of the values, as a name (also "bfloat16") or a NumPy type.
        row: numbers per element.
        index_dtype: type of the indices.
        hints: as for set_info(); they take precedence over the communicator's.

    Raises:
        TypeError, ValueError, Error: as for allreduce_coo().
    """

    @collective(_refusal.refuse_call)
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
        self._refused: Handle | None = None  # a call with an error in this rank's arguments
        given = count, dtype, op, comm, row, index_dtype
        tensor, problem = _refusal.prepare(_refusal.refuse_call, comm, self._arguments, *given)
        how = tensor[-1], self.type, hints, problem
        made = _refusal.prepare(_refusal.refuse_call, comm, _hints.info_of_plan, *how)
        with made as info:
            code = self._open(*tensor, info, ctypes.byref(self.handle))
        self._comm, self._checks = tensor[-1], _hints.checks_starts(hints)
        made.check(code, self._comm)
        _counts.register_plan(self.handle, self._comm)

    def _arguments(
        self, count: int, dtype: Any, op: str, comm: Any, row: int, index_dtype: Any
    ) -> tuple[tuple[Any, ...], str]:
        """The C arguments indextype, count, datatype, op and comm, and the error if the op is not for the
        type. Sets the types."""
        self.type, self.index_type = _types.name_of(dtype), _types.name_of(index_dtype)
        handle, (operation, problem) = _hints.communicator(comm), _types.operation_and_problem(op, self.type)
        indextype, datatype = _coo.index_type(self.index_type), _types.datatype(self.type, row)
        return (indextype, _types.to_integer(count, "count"), datatype, operation, handle), problem

    def _open(self, *arguments: Any) -> int:
        """Call the C function that makes the plan, and return its error code."""
        return library.MPIX_Sparse_allreduce_coo_init(*arguments)

    @collective(_refusal.refuse_start)
    def start(self, indices: Any, values: Any, *, reuse: _coo.Result | None = None) -> Handle:
        """Start a call. Collective; one call at a time. The handle's wait() returns a Result.

        Args:
            indices, values, reuse: as for allreduce_coo(), with the plan's types and row.

        Raises:
            TypeError, ValueError, BufferError: as for allreduce_coo().
            Error: the plan has been freed, or its last call is not complete.
        """
        if self._refused is not None:
            with contextlib.suppress(ValueError):
                self._refused.wait()
            self._refused = None
        given = indices, values, reuse
        return self._begin(*_refusal.prepare(self._refuse, None, self._elements, *given))

    def _elements(
        self, indices: Any, values: Any, reuse: _coo.Result | None
    ) -> tuple[_coo.Elements, _coo.Result]:
        elements = _coo.elements_of(indices, values)
        return elements, _coo.new_result(elements, self.count, reuse)

    def _refuse(self, error: Exception, _: Any) -> None:
        """Start a call that fails on all ranks. The next start() waits for it."""
        row_shape = (self.row,) * (self.row > 1)
        elements = _coo.DirectElements(0, 0, 0, self.type, row_shape, None, self.index_type)
        elements.problem = str(error)
        self._refused = self.start_elements(elements)

    def start_elements(self, elements: _coo.Elements, reuse: _coo.Result | None = None) -> Handle:
        """Start a call with elements, whose problem is an exception on all ranks."""
        return self._begin(elements, _coo.new_result(elements, self.count, reuse))

    def _begin(self, elements: _coo.Elements, result: _coo.Result) -> Handle:
        elements.problem = elements.problem or self._find_problem(elements)
        finish_abandoned(self._last)
        pending = PendingCall((self, elements, result), lambda: result, elements.problem)
        outputs = ctypes.byref(result.handle), ctypes.byref(pending.request)
        code = library.MPIX_Sparse_plan_start_coo(self.handle, *elements.pointers, *outputs)
        return self._begin_or_refuse(pending, code)

    def _find_problem(self, elements: _coo.Elements) -> str:
        if elements.type != self.type or elements.row != self.row:
            return f"values are {elements.row} x {elements.type}, the plan's {self.row} x {self.type}"
        if elements.index_type != self.index_type:
            return f"indices are {elements.index_type}, and the plan's {self.index_type}"
        return ""


class ReduceScatterCooPlan(CooPlan):
    """A plan for reduce_scatter_coo(). Its creation is collective over comm.

    Args:
        count, block, op, comm: as for reduce_scatter_coo().
        dtype, row, index_dtype, hints: as for CooPlan.

    Raises:
        TypeError, ValueError, Error: as for reduce_scatter_coo().
    """

    @collective(_refusal.refuse_call)
    def __init__(self, count: int, block: int, dtype: Any, op: str = "sum", **how: Any) -> None:
        convert = _refusal.refuse_call, how.get("comm"), _types.to_integer
        self._block = _refusal.prepare(*convert, block, "block")
        super().__init__(count, dtype, op, **how)

    def _open(self, indextype: Any, count: Any, *arguments: Any) -> int:
        return library.MPIX_Sparse_reduce_scatter_coo_init(indextype, count, self._block, *arguments)


class AllgatherCooPlan(CooPlan):
    """A plan for allgather_coo(). Its creation is collective over comm.

    Args:
        count, comm: as for allgather_coo().
        dtype, row, index_dtype, hints: as for CooPlan.

    Raises:
        TypeError, ValueError, Error: as for allgather_coo().
    """

    @collective(_refusal.refuse_call)
    def __init__(self, count: int, dtype: Any, **how: Any) -> None:
        name = _refusal.prepare(_refusal.refuse_call, how.get("comm"), _types.name_of, dtype)
        super().__init__(count, dtype, "lor" if name == "bool" else "sum", **how)

    def _open(self, indextype: Any, count: Any, datatype: Any, op: Any, *arguments: Any) -> int:
        return library.MPIX_Sparse_allgather_coo_init(indextype, count, datatype, *arguments)


def _problem_of(plans: Sequence[Plan]) -> Exception | None:
    """The exception for plans of which one cannot be started, as far as Python knows; None if there is
    none. The C library finds the others, and fails the calls of the other ranks."""
    for i, plan in enumerate(plans):
        if not isinstance(plan, Plan):
            return TypeError(f"plan_start_all() takes plans of dense arrays, Plan, not {type(plan).__name__}")
        if not plan.handle:
            return Error(f"plan_start_all: plans[{i}] has been freed")
    return None


def plan_start_all(plans: Sequence[Plan]) -> list[Handle]:
    """Start a call of each of several plans, such as those of a model's layers. Collective: all ranks pass
    the same plans in the same order. Small plans with one communicator, type and op are fused into one
    vector.

    Returns:
        A handle for each plan; fused calls complete together.

    Raises:
        TypeError: an argument is not a Plan.
        Error: a plan cannot be started. An error of one rank is an exception on all: of this function there,
            and of wait() on the others. No plan is started.
    """
    problem = _problem_of(plans)
    if problem is not None:
        given = [plan for plan in plans if isinstance(plan, Plan)]
        unchecked = {plan._comm.value for plan in given if not plan._checks}
        for value, comm in {plan._comm.value: plan._comm for plan in given}.items():
            if value not in unchecked:
                _refusal.refuse_start(problem, comm)
        raise problem
    pending_calls = [plan.pending() for plan in plans]
    handles = (ctypes.c_void_p * len(plans))(*(plan.handle.value for plan in plans))
    requests = (_mpi.Handle * len(plans))(*(pending.request.value for pending in pending_calls))
    _mpi.check(library.MPIX_Sparse_plan_start_all(ctypes.c_int(len(plans)), handles, requests))
    for plan, pending, request in zip(plans, pending_calls, requests):
        plan._last, pending.request = pending, _mpi.Handle(request)
    return [pending.begin(0) for pending in pending_calls]
