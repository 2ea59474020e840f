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
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    sparse_allreduce_async,
)
from ._alltoall import alltoall, alltoall_async
from ._broadcast import (
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from ._built import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
    start_timeline,
    stop_timeline,
)
from ._compression import Compression
from ._ddp import DdpState, ddp_comm_hook
from ._gather import (
    allgather,
    allgather_async,
    allgather_object,
    barrier,
    grouped_allgather,
    grouped_allgather_async,
)
from ._grouped import (
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from ._join import join
from ._optimizer import DistributedOptimizer
from ._process_set import (
    ProcessSet,
    add_process_set,
    global_process_set,
    init,
    remove_process_set,
    shutdown,
)
from ._reducescatter import (
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from ._sync_batch_norm import SyncBatchNorm
from ._tensors import Adasum, Average, Max, Min, Product, Sum
from ._work import Work, poll, synchronize
from ._world import (
    cross_rank,
    cross_size,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    report,
    size,
)
from .elastic import HorovodInternalError, HostsUpdatedInterrupt
from . import compression, elastic, functions, mpi_ops, optimizer, sync_batch_norm

if torch.distributed.is_available():
    from ._backend import register_backend

    register_backend()

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DdpState",
    "DistributedOptimizer",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "SyncBatchNorm",
    "Work",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ccl_built",
    "compression",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "ddp_comm_hook",
    "elastic",
    "functions",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_ops",
    "mpi_threads_supported",
    "nccl_built",
    "optimizer",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "report",
    "rocm_built",
    "shutdown",
    "size",
    "sparse_allreduce_async",
    "start_timeline",
    "stop_timeline",
    "sync_batch_norm",
    "synchronize",
]
