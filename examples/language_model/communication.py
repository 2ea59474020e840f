# SPDX-License-Identifier: BSD-3-Clause
"""Ways to sum gradients over all ranks. Call reduce() after each backward pass; it replaces the gradients
by their sums. Then call step()."""

from __future__ import annotations

import os
import socket

import torch
import torch.distributed

import mpix_sparse
import mpix_sparse.torch as hvd
from model import LanguageModel


class MpixSparse:
    """The package's optimizer: starts the allreduce of gradients during the backward pass; gradients of
    tables are sparse rows."""

    sparse = True
    compression = hvd.Compression.none
    shard_state = False

    def __init__(self, model: LanguageModel, optimizer: torch.optim.Optimizer) -> None:
        # Sparse views are allowed because Adagrad only reads gradients.
        self.optimizer = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=model.named_parameters(),
            compression=self.compression,
            op=hvd.Sum,
            sparse_views=True,
            shard_state=self.shard_state,
        )
        self.early_seconds = 0.0
        self._seconds = 0.0

    def reduce(self) -> None:
        """Wait for the sums. Sets early_seconds to the time that communication took during the backward
        pass."""
        self.early_seconds = self.optimizer.communication_seconds - self._seconds
        self.optimizer.synchronize()
        self._seconds = self.optimizer.communication_seconds

    def step(self) -> None:
        """Make a step. reduce() has already synchronized the ranks."""
        with self.optimizer.skip_synchronize():
            self.optimizer.step()


class Sharded(MpixSparse):
    """MpixSparse with the optimizer's state of each row on one rank only, which updates the row."""

    shard_state = True


def compressed(ratio: float) -> type[MpixSparse]:
    """MpixSparse with Deep Gradient Compression: sends the share `ratio` of each gradient, tables included.
    The momentum is 0, since Adagrad has none."""

    class Compressed(MpixSparse):
        sparse = False
        compression = hvd.Compression.dgc(ratio=ratio, momentum=0.0)

    return Compressed


class _AfterBackward:
    """Sums gradients after the backward pass: each table separately, and all other parameters as one
    vector."""

    early_seconds = 0.0

    def __init__(self, model: LanguageModel, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self._tables = model.tables
        tables = {id(table) for table in self._tables}
        self._rest = [parameter for parameter in model.parameters() if id(parameter) not in tables]

    def reduce(self) -> None:
        gradients = [parameter.grad for parameter in self._rest]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.sum_([*(table.grad for table in self._tables), flat])
        for gradient, piece in zip(gradients, flat.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(piece.view_as(gradient))

    def step(self) -> None:
        self.optimizer.step()

    def sum_(self, tensors: list[torch.Tensor]) -> None:
        """Replace the tensors by their sums over all ranks."""
        raise NotImplementedError


class Dense(_AfterBackward):
    """Dense gradients, through MPI_Allreduce."""

    sparse = False

    def __init__(self, model: LanguageModel, optimizer: torch.optim.Optimizer) -> None:
        super().__init__(model, optimizer)
        # Only on MPI_COMM_WORLD: the optimizer of MpixSparse has its own communicators.
        mpix_sparse.set_info(scheme="dense")

    def sum_(self, tensors: list[torch.Tensor]) -> None:
        for tensor in tensors:
            array = tensor.numpy()
            mpix_sparse.allreduce(array, out=array)


class Gloo(_AfterBackward):
    """Sparse allreduce of PyTorch's Gloo backend; all tensors are reduced concurrently."""

    sparse = True

    def __init__(self, model: LanguageModel, optimizer: torch.optim.Optimizer) -> None:
        super().__init__(model, optimizer)
        if not torch.distributed.is_initialized():
            _init_gloo()

    def sum_(self, tensors: list[torch.Tensor]) -> None:
        for work in [torch.distributed.all_reduce(tensor, async_op=True) for tensor in tensors]:
            work.wait()


def _init_gloo() -> None:
    """Initialize Gloo; rank 0 opens a port and broadcasts its number."""
    rank, ranks = hvd.rank(), hvd.size()
    alone = hvd.local_size() == ranks
    if alone:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    name = "localhost" if alone else socket.gethostname()
    store = torch.distributed.TCPStore(name, 0, ranks, True, wait_for_workers=False) if rank == 0 else None
    host, port = hvd.broadcast_object((name, store.port) if store else None, root_rank=0)
    store = store or torch.distributed.TCPStore(host, port, ranks, False)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=ranks)


SHARDED = "sharded"  # the name of the way that --shard-state adds
WAYS = {"dense": Dense, "gloo": Gloo, "mpix_sparse": MpixSparse}


def way_of(name: str, compression: str, ratio: float) -> type:
    """The class of a way to sum gradients."""
    if name == SHARDED:
        return Sharded
    return compressed(ratio) if (name, compression) == ("mpix_sparse", "dgc") else WAYS[name]
