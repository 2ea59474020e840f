# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training with PyTorch, under the names that Horovod's users know.

    import mpix_sparse.torch as hvd

    hvd.init()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

Sparse gradients (embeddings with sparse=True) are sent as rows, and zeros of dense gradients are not sent.
Calls are matched by order, not by name: all ranks make the same calls in the same order. Tensors on a device
are copied to the host and back.

For torch.distributed there are the backend "mpix_sparse", which importing this package registers, and
ddp_comm_hook() for DistributedDataParallel with any backend.
"""

import torch

from ._allreduce import (
    Work,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    poll,
    sparse_allreduce_async,
    synchronize,
)
from ._broadcast import (
    broadcast,
    broadcast_,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from ._compression import Compression
from ._ddp import DdpState, ddp_comm_hook
from ._gather import allgather, allgather_async, allgather_object, barrier
from ._grouped import (
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from ._join import join
from ._optimizer import DistributedOptimizer
from ._tensors import Average, Max, Min, Product, Sum
from ._world import (
    global_process_set,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    report,
    shutdown,
    size,
)

if torch.distributed.is_available():
    from ._backend import register_backend

    register_backend()

__all__ = [
    "Average",
    "Compression",
    "DdpState",
    "DistributedOptimizer",
    "Max",
    "Min",
    "Product",
    "Sum",
    "Work",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ddp_comm_hook",
    "global_process_set",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "init",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "poll",
    "rank",
    "report",
    "shutdown",
    "size",
    "sparse_allreduce_async",
    "synchronize",
]
