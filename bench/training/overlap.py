# SPDX-License-Identifier: BSD-3-Clause
"""Sums of gradients over all ranks during the backward pass, by one scheme for the tables: plans of
mpix_sparse that start as soon as a gradient is there."""

from __future__ import annotations

import time
from typing import Any, Callable, Sequence

import numpy
import torch

import mpix_sparse

Span = tuple[str, float, float]  # name, begin and end


def add_hook(parameter: torch.nn.Parameter, ready: Callable[[], None]) -> Any:
    """Call a function whenever a gradient has been accumulated. Returns what must be kept alive."""
    # The node that accumulates a leaf's gradient is the input of any view of it.
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return node.register_hook(lambda *unused: ready()), node


class Call:
    """One allreduce of each step.

    Attributes:
        begun: when it was started.
        rows_in, rows_out: rows of this rank and of the sum, if they are counted.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = 0.0
        self.rows_in: int | None = None
        self.rows_out: int | None = None
        self.plan: Any = None
        self._handle: Any = None

    def start(self) -> None:
        self.begun = time.perf_counter()
        self._handle = self._start()

    def progress(self) -> None:
        """Make progress, which calls do not make outside the library."""
        if self._handle is not None:
            self._handle.done()

    def wait(self) -> None:
        result, self._handle = self._handle.wait(), None
        self._finish(result)

    def _start(self) -> Any:
        raise NotImplementedError

    def _finish(self, result: Any) -> None:
        pass


class DenseTable(Call):
    """The whole gradient of a table, summed in place by MPI_Allreduce."""

    def __init__(self, name: str, table: torch.nn.Parameter) -> None:
        super().__init__(name)
        table.grad = torch.zeros_like(table)  # gradients accumulate there in each step
        memory = table.grad.numpy()
        self.plan = mpix_sparse.Plan(memory, out=memory, hints={"scheme": "dense"})

    def _start(self) -> Any:
        return self.plan.start()


class SparseTable(Call):
    """The rows of a table that have a gradient."""

    def __init__(self, name: str, table: torch.nn.Parameter, scheme: str) -> None:
        super().__init__(name)
        self._table = table
        rows, row = table.shape
        self.plan = mpix_sparse.CooPlan(rows, "float32", row=row, hints={"scheme": scheme})

    def _start(self) -> Any:
        gradient = self._table.grad
        self.rows_in = len(gradient._indices()[0].unique())
        return self.plan.start(gradient._indices()[0].numpy(), gradient._values().numpy())

    def _finish(self, result: Any) -> None:
        indices = torch.from_numpy(numpy.array(result.indices)).unsqueeze(0)
        values = torch.from_numpy(numpy.array(result.values))
        self.rows_out = result.nnz
        self._table.grad = torch.sparse_coo_tensor(indices, values, self._table.shape)._coalesced_(True)


class Rest(Call):
    """The gradients of all other parameters, as one vector that MPI_Allreduce sums."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        super().__init__("others")
        self._parameters = parameters
        self._buffer = torch.zeros(sum(parameter.numel() for parameter in parameters))
        self._pieces = self._buffer.split([parameter.numel() for parameter in parameters])
        memory = self._buffer.numpy()
        self.plan = mpix_sparse.Plan(memory, out=memory, hints={"scheme": "dense"})

    def _start(self) -> Any:
        for parameter, piece in zip(self._parameters, self._pieces):
            piece.copy_(parameter.grad.flatten())
        return self.plan.start()

    def _finish(self, result: Any) -> None:
        for parameter, piece in zip(self._parameters, self._pieces):
            parameter.grad.copy_(piece.view_as(parameter))


class Sums:
    """All calls of a step. The backward pass starts each as soon as its gradients are there: in one order on
    all ranks, since all have the same model.

    Args:
        tables: names and parameters.
        rest: all other parameters.
        scheme: of the tables; "dense" for whole gradients.
    """

    def __init__(
        self, tables: Sequence[tuple[str, torch.nn.Parameter]], rest: list[Any], scheme: str
    ) -> None:
        self._kept = []
        self._started: list[Call] = []
        self.calls: list[Call] = []
        for name, table in tables:
            call = DenseTable(name, table) if scheme == "dense" else SparseTable(name, table, scheme)
            self._add(call, [table])
        self._add(Rest(rest), rest)

    def _add(self, call: Call, parameters: Sequence[torch.nn.Parameter]) -> None:
        self.calls.append(call)
        missing = [len(parameters)]

        def ready() -> None:
            missing[0] -= 1
            if missing[0] == 0:
                missing[0] = len(parameters)
                call.start()
                self._started.append(call)
            for earlier in self._started:
                earlier.progress()

        self._kept += [add_hook(parameter, ready) for parameter in parameters]

    def wait(self, origin: float) -> list[Span]:
        """Wait for all sums. Returns when each was started and waited for, in seconds after `origin`."""
        spans = []
        for call in self._started:
            call.wait()
            spans.append((call.name, call.begun - origin, time.perf_counter() - origin))
        self._started = []
        return spans
