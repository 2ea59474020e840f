# SPDX-License-Identifier: BSD-3-Clause
"""A backend of torch.distributed over MPI: `torch.distributed.init_process_group("mpix_sparse")` after the
import of this package. Tensors may be sparse in allreduce, reduce, broadcast and allgather."""

from __future__ import annotations

import inspect
import socket
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Iterator, Sequence

import torch
import torch.distributed as dist

from .. import _pending, _mpi
from . import _collectives
from ._allreduce import start_allreduce
from ._work import Work, WorkGroup
from ._broadcast import broadcast_object
from ._progress import future_of
from ._tensors import Average, Max, Min, Op, Product, Sum
from ._world import World, group_of, init, size, world

NAME = "mpix_sparse"
SCHEME = "mpix"
CHECKED = {"forward": 0}  # a tensor that is sparse on some ranks only must be an error, not a hang

_OPS = (
    (dist.ReduceOp.SUM, Sum),
    (dist.ReduceOp.AVG, Average),
    (dist.ReduceOp.MIN, Min),
    (dist.ReduceOp.MAX, Max),
    (dist.ReduceOp.PRODUCT, Product),
    (dist.ReduceOp.BAND, Op("BAND", "band")),
    (dist.ReduceOp.BOR, Op("BOR", "bor")),
    (dist.ReduceOp.BXOR, Op("BXOR", "bxor")),
)


def _op(theirs: Any) -> Op:
    for known, ours in _OPS:
        if theirs == known:
            return ours
    raise ValueError(f"backend {NAME} has no reduction {theirs}")


_unclaimed: dict[Any, None] = {}  # calls that nobody has waited for, the oldest first
MAX_UNCLAIMED = 100  # beyond this many, complete calls are dropped


class _Work(torch._C._distributed_c10d.Work):
    """Calls in flight as a Work of torch.distributed."""

    def __init__(self, works: Sequence[Work], tensors: Any) -> None:
        super().__init__()
        self._works, self._tensors = WorkGroup(works), tensors
        # In some versions C++ code uses this object without a reference to it.
        _unclaimed[self] = None
        oldest = next(iter(_unclaimed))
        if len(_unclaimed) > MAX_UNCLAIMED and oldest.is_completed():
            del _unclaimed[oldest]

    def is_completed(self) -> bool:
        """True if the calls are complete. Makes progress on all calls in flight."""
        return self._works.done()

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the calls. The timeout is ignored, since MPI cannot cancel a collective call."""
        _unclaimed.pop(self, None)
        self._works.wait()
        return True

    def synchronize(self) -> None:
        """Wait for the calls."""
        self.wait()

    def result(self) -> Any:
        """Wait for the calls; returns their output tensors."""
        self.wait()
        return self._tensors

    def get_future(self) -> Any:
        """A future of the output tensors."""
        _unclaimed.pop(self, None)
        return future_of(self._works, self.result)


class ProcessGroup(dist.ProcessGroup):
    """A process group of torch.distributed over MPI; reductions go through this library.

    Every method is collective over the group and starts calls, whose errors wait() raises. Calls on a group
    are made in the same order on all ranks. Tensors on a device are copied to the host and back.
    """

    def __init__(self, ranks: World) -> None:
        super().__init__(ranks.rank, ranks.size)
        self._ranks = ranks

    def getBackendName(self) -> str:  # noqa: N802  (PyTorch's name)
        """The name of the backend."""
        return NAME

    def allreduce(self, tensors: Any, opts: Any = None) -> _Work:
        """Reduce tensors in place, dense or sparse COO; a sparse one becomes the union of all ranks'."""
        op = Sum if opts is None else _op(opts.reduceOp)
        return _Work([start_allreduce(tensor, tensor, op, self._ranks) for tensor in tensors], tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Any, opts: Any) -> _Work:
        """Reduce tensors; the root's are overwritten."""
        op, mine = _op(opts.reduceOp), self._ranks.rank == opts.rootRank
        # In place on all ranks, since ranks also compare that.
        sums = tensors if mine else [tensor.clone() for tensor in tensors]
        return _Work([start_allreduce(tensor, tensor, op, self._ranks) for tensor in sums], tensors)

    def broadcast(self, tensors: Any, opts: Any) -> _Work:
        """Overwrite tensors with the root's."""
        comm = self._ranks.plain
        return _Work([_collectives.broadcast(tensor, opts.rootRank, comm) for tensor in tensors], tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> _Work:
        """Put each rank's tensor into the outputs of all."""
        pairs, comm = zip(outputs, inputs), self._ranks.plain
        return _Work([_collectives.allgather(output, tensor, comm) for output, tensor in pairs], outputs)

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> _Work:
        return _Work([_collectives.allgather_into(output, tensor, self._ranks.plain)], [output])

    all_gather_single = _allgather_base  # its name in newer versions

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> _Work:
        """Put each rank's tensor into the root's outputs."""
        lists = outputs[0] if outputs else []
        return _Work([_collectives.gather(lists, inputs[0], opts.rootRank, self._ranks.plain)], outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> _Work:
        """Overwrite each rank's tensor with the root's input for that rank."""
        pieces = inputs[0] if inputs else []
        return _Work([_collectives.scatter(outputs[0], pieces, opts.rootRank, self._ranks.plain)], outputs)

    def send(self, tensors: Any, rank: int, tag: int) -> _Work:
        """Send a tensor to a rank."""
        return _Work([_collectives.send(tensors[0], rank, tag, self._ranks.plain)], tensors)

    def recv(self, tensors: Any, rank: int, tag: int) -> _Work:
        """Overwrite a tensor with the tensor that a rank sends."""
        return _Work([_collectives.receive(tensors[0], rank, tag, self._ranks.plain)], tensors)

    def barrier(self, opts: Any = None) -> _Work:
        """Start a barrier."""
        return _Work([_collectives.barrier(self._ranks.plain)], [])


def _mismatch(rank: int, size: int, ranks: Sequence[int]) -> str:
    """The difference between this process's ranks in torch.distributed and in MPI; empty if there is none."""
    mine = world()
    if not ranks and size != mine.size:
        return f"torch.distributed has {size} ranks, and MPI {mine.size}"
    theirs = ranks[rank] if ranks else rank
    if theirs != mine.rank:
        return f"this process is rank {theirs} of torch.distributed, and rank {mine.rank} of MPI"
    return ""


def _compare_offers(options: Any, ranks: tuple[int, ...], number: int, offer: int) -> bool:
    """Compare offers with the other ranks of a new group, the number-th creation with these ranks; True if
    all offers are equal and not 0. Collective, through the store.

    Raises:
        ValueError: a rank has different numbers in MPI and torch.distributed, on all ranks.
    """
    rank, size, store = options.group_rank, options.group_size, options.store
    problem = _mismatch(rank, size, ranks)
    # All keys contain the number, since a store may still have the keys of earlier groups.
    store.add(f"wrong {number}", int(bool(problem)))
    store.add(f"offer {number} {offer}", 1)
    store.set(f"seen {number} {rank}", "")
    if problem:
        raise ValueError(f"backend {NAME}: {problem}")
    store.wait([f"seen {number} {other}" for other in range(size)])
    if store.add(f"wrong {number}", 0) > 0:
        raise ValueError(f"backend {NAME}: ranks of torch.distributed and of MPI differ on another rank")
    return offer > 0 and store.add(f"offer {number} {offer}", 0) == size


@dataclass
class _CachedGroup:
    """Communicators of a group, reused after the group is destroyed.

    Attributes:
        number: number of the creation with these ranks, the same on all of them.
        name: name in torch.distributed of the group that uses them; empty if it was destroyed.
    """

    ranks: tuple[int, ...]
    number: int
    group: World
    name: str = ""


_cached_groups: list[_CachedGroup] = []
_creations: Counter[tuple[int, ...]] = Counter()  # by ranks


def _reclaim() -> None:
    """Mark the communicators of destroyed groups as unused. torch.distributed does not notify a backend, and
    MPI_Comm_free is collective, so they are kept for later groups."""
    module = dist.distributed_c10d
    names = module._world.pg_names if hasattr(module, "_world") else module._pg_names
    existing = set(map(str, names.values()))
    for cached in _cached_groups:
        if cached.name not in existing:
            cached.name = ""


def _create(options: Any, unused: Any) -> ProcessGroup:
    """Create a group for torch.distributed. Collective over its ranks.

    Raises:
        ValueError: MPI numbers the ranks differently; or the group has some ranks only, before init().
    """
    ranks = tuple(options.global_ranks_in_group)
    if not ranks:
        init()
    _reclaim()
    cached = next((cached for cached in _cached_groups if cached.ranks == ranks and not cached.name), None)
    _creations[ranks] += 1
    agreed = _compare_offers(options, ranks, _creations[ranks], cached.number if cached else 0)
    if cached is None or not agreed:
        cached = _CachedGroup(ranks, _creations[ranks], group_of(ranks or range(size()), **CHECKED))
        _cached_groups.append(cached)
    cached.name = str(options.group_id)
    return ProcessGroup(cached.group)


def _cleanup() -> None:
    _pending.wait_for_all()
    _unclaimed.clear()
    _cached_groups.clear()


_stores: list[Any] = []  # kept for the queries of ranks that end later


def _rendezvous(
    url: str, *unused: Any, timeout: timedelta = timedelta(minutes=5), **more: Any
) -> Iterator[Any]:
    """The rendezvous of init_method="mpix://", through MPI; needs no addresses, ports or ranks."""
    init()
    mine = world()
    store, address = None, None
    if mine.rank == 0:
        host = "localhost" if mine.local_size == mine.size else socket.gethostname()
        store = dist.TCPStore(host, 0, mine.size, True, timeout, wait_for_workers=False)
        address = host, store.port
        _stores.append(store)
    address = broadcast_object(address)
    yield store or dist.TCPStore(*address, mine.size, False, timeout), mine.rank, mine.size


def register_backend() -> None:
    """Register the backend with torch.distributed, which the import of mpix_sparse.torch does. Not
    collective."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    how: dict[str, Any] = {"extended_api": True}
    if "devices" in inspect.signature(dist.Backend.register_backend).parameters:
        how["devices"] = ["cpu", "cuda"]
    dist.Backend.register_backend(NAME, _create, **how)
    dist.register_rendezvous_handler(SCHEME, _rendezvous)
    _mpi.add_finalize_hook(_cleanup)
