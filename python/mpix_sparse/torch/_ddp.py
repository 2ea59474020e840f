# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of DistributedDataParallel through this library, whatever backend does the rest."""

from __future__ import annotations

from typing import Any

import torch

from .. import CooPlan, Plan
from ._allreduce import Work
from ._compression import Compression, Compressor
from ._progress import future_of
from ._tensors import (
    Average,
    Op,
    as_array,
    choose_op,
    coordinates,
    refuse_average,
    scale_,
    sparse_like,
    type_of,
)
from ._world import World, group_of, world


class _Dense:
    """A bucket of dense gradients: its plan, and the memory that is reduced, the bucket's own where it is the
    host's."""

    def __init__(self, gradient: torch.Tensor, ranks: World, op: Op, hints: dict[str, str]) -> None:
        self.buffer = gradient.detach().to("cpu")
        array, comm = as_array(self.buffer), ranks.comm(type_of(gradient))
        self.plan = Plan(array, op.reduction, comm=comm, out=array, hints=hints)

    def start(self, gradient: torch.Tensor, divisor: int) -> Work:
        """Reduce the bucket of a step."""
        into = gradient.detach()
        apart = into.data_ptr() != self.buffer.data_ptr()
        if apart:
            self.buffer.copy_(into)

        def finish(_: Any) -> torch.Tensor:
            scale_(self.buffer, 1, divisor)
            return into.copy_(self.buffer) if apart else into

        return Work(self.plan.start(), finish)


class _Sparse:
    """A bucket of one sparse gradient, an embedding's rows: its plan, and the last outcome's memory."""

    def __init__(self, gradient: torch.Tensor, ranks: World, op: Op, hints: dict[str, str]) -> None:
        self.row, name = gradient.shape[1:], type_of(gradient)
        comm = ranks.comm(name)
        self.plan = CooPlan(len(gradient), name, op.reduction, comm=comm, row=self.row.numel(), hints=hints)
        self.result: Any = None

    def start(self, gradient: torch.Tensor, divisor: int) -> Work:
        """Reduce the gradient of a step."""

        def finish(result: Any) -> torch.Tensor:
            self.result = result
            return sparse_like(gradient, 1, result, divisor)

        indices, values = map(as_array, self._rows(gradient.detach()))
        return Work(self.plan.start(indices, values, reuse=self.result), finish)

    def _rows(self, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Indices and values. Ranks that stand by in join() bring nothing, as coordinates and not as rows."""
        if gradient._nnz() == 0:
            return torch.empty(0, dtype=torch.int64), torch.empty(0, *self.row, dtype=gradient.dtype)
        return coordinates(gradient)


def _all_ranks() -> World:
    ranks = torch.distributed.get_world_size()
    if ranks != world().size:
        raise ValueError(f"torch.distributed has {ranks} ranks, and mpix_sparse.torch {world().size}")
    return world()


def _ranks_of(group: Any) -> World:
    """Those of a process group, whatever numbers torch.distributed gives them. Collective over it. Models of
    the same ranks share their communicators."""
    ranks = [0] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(ranks, world().rank, group=group)
    parts, numbers = world().parts, tuple(ranks)
    if numbers not in parts:
        parts[numbers] = group_of(numbers)
    return parts[numbers]


class DdpState:
    """What ddp_comm_hook() knows of one model: how its gradients travel, and a plan for each bucket.

    Args:
        compression: Compression.none, or bf16 or fp16 to send floats as 16 bits; sums stay 32 bits.
        op: Average (the default) or Sum.
        process_group: that of DistributedDataParallel where it is of some ranks only, of any backend. It is
            collective over the group then.

    Raises:
        ValueError: there is no such op, or no such compression here; or torch.distributed has other ranks
            than init() began with.
    """

    def __init__(
        self, compression: Compressor = Compression.none, op: Op = Average, process_group: Any = None
    ) -> None:
        if type(compression) is not Compressor:
            raise ValueError(f"compression is {compression!r}; a DdpState takes none, bf16 or fp16")
        self._hints = {} if compression.dtype is None else {"wire_values": compression.wire_values}
        self._op = choose_op(None, op)
        self._ranks = _all_ranks() if process_group is None else _ranks_of(process_group)
        self._buckets: dict[int, tuple[Any, int, Any]] = {}

    def start(self, index: int, gradient: torch.Tensor) -> Work:
        """Reduce the gradients of a bucket. Collective; blocks only where its plan is made."""
        refuse_average(gradient, self._op)
        kind = _Sparse if gradient.is_sparse else _Dense
        key = kind, gradient.shape, gradient.dtype
        known, uses, bucket = self._buckets.get(index, (None, 0, None))
        # DistributedDataParallel lays its buckets out anew after the first step, on all ranks.
        if known != key or uses == 1:
            bucket = kind(gradient, self._ranks, self._op, self._hints)
        self._buckets[index] = key, uses + 1, bucket
        return bucket.start(gradient, self._op.divisor(self._ranks.size))


# DistributedDataParallel refuses a hook whose annotations are text, as they are in this file.
def ddp_comm_hook(state, bucket):  # type: ignore[no-untyped-def]
    """Reduce the gradients of DistributedDataParallel over all ranks, beside the backward pass.

        model = DistributedDataParallel(model)
        model.register_comm_hook(hvd.DdpState(), hvd.ddp_comm_hook)

    Dense buckets are scanned, and what is zero is not sent; gradients of embeddings with sparse=True travel
    as rows. Collective: all ranks have the same model. The process group of DistributedDataParallel, of any
    backend, has the ranks that init() began with, or is the DdpState's.

    Args:
        state: a DdpState.
        bucket: of DistributedDataParallel.

    Returns:
        A future of the reduced bucket.

    Raises:
        TypeError: state is no DdpState.
        RuntimeError: out of backward(), with the library's sentence, on all ranks.
    """
    if not isinstance(state, DdpState):
        raise TypeError(f"the state of ddp_comm_hook is {state!r}; it must be a DdpState, one for each model")
    work = state.start(bucket.index(), bucket.buffer())
    return future_of(work, work.wait)
