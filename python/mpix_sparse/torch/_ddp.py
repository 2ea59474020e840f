# SPDX-License-Identifier: BSD-3-Clause
"""A communication hook that reduces the gradients of DistributedDataParallel, with any backend."""

from __future__ import annotations

from typing import Any

import torch

from .. import CooPlan, Plan
from ._work import Work
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
    """A bucket of dense gradients: its plan, and the buffer that is reduced, which is the bucket's own
    memory if that is on the host."""

    def __init__(self, gradient: torch.Tensor, ranks: World, op: Op, compression: Compressor) -> None:
        dtype = compression.buffer_type(gradient.dtype, ranks.plain)
        self.buffer, self.compression = gradient.detach().to("cpu", dtype), compression
        array, comm = as_array(self.buffer), ranks.comm(type_of(self.buffer))
        self.plan = Plan(array, op.reduction, comm=comm, out=array, hints=compression.hints)
        self.ranks = ranks

    def start(self, gradient: torch.Tensor, divisor: int) -> Work:
        """Start to reduce the bucket of a step."""
        bucket = gradient.detach()
        is_copy = bucket.data_ptr() != self.buffer.data_ptr()
        if is_copy:
            self.buffer.copy_(bucket)
        self.compression.round_(self.buffer)

        def finish(_: Any) -> torch.Tensor:
            self.compression.round_(self.buffer)
            return scale_(bucket.copy_(self.buffer) if is_copy else bucket, 1, divisor)

        self.ranks.last = self.ranks.comm(type_of(self.buffer))
        return Work(self.plan.start(), finish, self.ranks.plain)


class _Sparse:
    """A bucket of one sparse gradient, rows of an embedding: its plan, and the last result, whose memory
    the next call reuses."""

    def __init__(self, gradient: torch.Tensor, ranks: World, op: Op, compression: Compressor) -> None:
        self.row, name = gradient.shape[1:], type_of(gradient)
        self.compression, self.ranks = compression, ranks
        how = {"comm": ranks.comm(name), "row": self.row.numel(), "hints": compression.hints}
        self.plan = CooPlan(len(gradient), name, op.reduction, **how)
        self.result: Any = None

    def start(self, gradient: torch.Tensor, divisor: int) -> Work:
        """Start to reduce the gradient of a step."""

        def finish(result: Any) -> torch.Tensor:
            self.result = result
            return sparse_like(gradient, 1, result, divisor)

        indices, values = map(as_array, self._rows(gradient.detach()))
        self.ranks.last = self.ranks.comm(type_of(gradient))
        return Work(self.plan.start(indices, values, reuse=self.result), finish, self.ranks.plain)

    def _rows(self, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Indices and values. Ranks in join() have empty gradients without the shape of rows."""
        if gradient._nnz() == 0:
            return torch.empty(0, dtype=torch.int64), torch.empty(0, *self.row, dtype=gradient.dtype)
        indices, values = coordinates(gradient)
        return indices, self.compression.round(values)


def _all_ranks() -> World:
    ranks = torch.distributed.get_world_size()
    if ranks != world().size:
        raise ValueError(f"torch.distributed has {ranks} ranks, and mpix_sparse.torch {world().size}")
    return world()


def _ranks_of(group: Any) -> World:
    """The ranks of a process group, which torch.distributed may number differently. Collective over the
    group. Models with the same ranks share communicators."""
    ranks = [0] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(ranks, world().rank, group=group)
    parts, numbers = world().parts, tuple(ranks)
    if numbers not in parts:
        parts[numbers] = group_of(numbers)
    return parts[numbers]


class DdpState:
    """The state of ddp_comm_hook() for one model: options, and a plan for each bucket.

    Args:
        compression: Compression.none, or bf16 or fp16 to round floats to 16 bits, and to send them so.
        op: Average (the default) or Sum.
        process_group: the process group of DistributedDataParallel if it has some ranks only, with any
            backend. The constructor is then collective over the group.

    Raises:
        ValueError: op is unknown, the compression is not allowed here, or the ranks of torch.distributed are
            not those of init().
    """

    def __init__(
        self, compression: Compressor = Compression.none, op: Op = Average, process_group: Any = None
    ) -> None:
        if type(compression) is not Compressor:
            raise ValueError(f"compression is {compression!r}; a DdpState takes none, bf16 or fp16")
        self._compression = compression
        self._op = choose_op(None, op)
        self._ranks = _all_ranks() if process_group is None else _ranks_of(process_group)
        self._buckets: dict[int, tuple[Any, int, Any]] = {}

    def start(self, index: int, gradient: torch.Tensor) -> Work:
        """Start to reduce the gradients of a bucket. Collective; blocks only to create the bucket's plan."""
        refuse_average(gradient, self._op)
        kind = _Sparse if gradient.is_sparse else _Dense
        key = kind, gradient.shape, gradient.dtype
        known_key, uses, bucket = self._buckets.get(index, (None, 0, None))
        # DistributedDataParallel rebuilds its buckets after the first step, on all ranks.
        if known_key != key or uses == 1:
            bucket = kind(gradient, self._ranks, self._op, self._compression)
        self._buckets[index] = key, uses + 1, bucket
        return bucket.start(gradient, self._op.divisor(self._ranks.size))


# DistributedDataParallel rejects a hook whose annotations are strings, as they are in this file.
def ddp_comm_hook(state, bucket):  # type: ignore[no-untyped-def]
    """Reduce the gradients of DistributedDataParallel over all ranks, during the backward pass.

        model = DistributedDataParallel(model)
        model.register_comm_hook(hvd.DdpState(), hvd.ddp_comm_hook)

    Zeros of dense buckets are not sent; gradients of embeddings with sparse=True are sent as rows.
    Collective: all ranks have the same model. The process group of DistributedDataParallel, with any
    backend, has the ranks of init(), or is the DdpState's.

    Args:
        state: a DdpState.
        bucket: a bucket of DistributedDataParallel.

    Returns:
        A future of the reduced bucket.

    Raises:
        TypeError: state is not a DdpState.
        RuntimeError: the reduction failed; raised by backward(), on all ranks.
    """
    if not isinstance(state, DdpState):
        raise TypeError(f"the state of ddp_comm_hook is {state!r}; it must be a DdpState, one for each model")
    work = state.start(bucket.index(), bucket.buffer())
    return future_of(work, work.wait)
