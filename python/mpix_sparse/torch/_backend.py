# SPDX-License-Identifier: BSD-3-Clause
"""A backend of torch.distributed over MPI: `torch.distributed.init_process_group("mpix_sparse")`, after this
package has been imported. Tensors may be sparse in allreduce, reduce, broadcast and allgather."""

from __future__ import annotations

import inspect
import socket
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Iterator, Sequence

import torch
import torch.distributed as dist

from .. import _flight, _mpi
from . import _collectives
from ._allreduce import All, Work, start_allreduce
from ._broadcast import broadcast_object
from ._progress import future_of
from ._tensors import Average, Max, Min, Op, Product, Sum
from ._world import World, group_of, init, size, world

NAME = "mpix_sparse"
SCHEME = "mpix"
AGREED = {"forward": 0}  # so that a tensor that is sparse on some ranks only is an error, not a hang

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


_unclaimed: dict[Any, None] = {}  # the oldest first
MOST_UNCLAIMED = 100  # of calls that are complete, in case nobody will claim them


class _Work(torch._C._distributed_c10d.Work):
    """Calls in flight, as torch.distributed takes them."""

    def __init__(self, works: Sequence[Work], tensors: Any) -> None:
        super().__init__()
        self._works, self._tensors = All(works), tensors
        # C++ code holds no reference to this object in some versions, and asks it all the same.
        _unclaimed[self] = None
        oldest = next(iter(_unclaimed))
        if len(_unclaimed) > MOST_UNCLAIMED and oldest.is_completed():
            del _unclaimed[oldest]

    def is_completed(self) -> bool:
        """Whether the calls are complete. Moves all calls in flight."""
        return self._works.done()

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the calls. The timeout is not looked at: MPI cannot take back a call."""
        _unclaimed.pop(self, None)
        self._works.wait()
        return True

    def synchronize(self) -> None:
        """Wait for the calls."""
        self.wait()

    def result(self) -> Any:
        """Wait for the calls; returns the tensors that they wrote."""
        self.wait()
        return self._tensors

    def get_future(self) -> Any:
        """A future of the tensors."""
        _unclaimed.pop(self, None)
        return future_of(self._works, self.result)


class ProcessGroup(dist.ProcessGroup):
    """Ranks of torch.distributed that talk through MPI and, where they add, through this library.

    Every method is collective over the group and starts calls; what is wrong with one comes out of wait().
    Calls on a group come in the same order on all ranks. Tensors on a device are copied to the host and back.
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
        # In place on all ranks, since they agree on that too.
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

    all_gather_single = _allgather_base  # as newer versions call it

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> _Work:
        """Put each rank's tensor into the root's outputs."""
        into = outputs[0] if outputs else []
        return _Work([_collectives.gather(into, inputs[0], opts.rootRank, self._ranks.plain)], outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> _Work:
        """Overwrite each rank's tensor with the root's input for it."""
        pieces = inputs[0] if inputs else []
        return _Work([_collectives.scatter(outputs[0], pieces, opts.rootRank, self._ranks.plain)], outputs)

    def send(self, tensors: Any, rank: int, tag: int) -> _Work:
        """Send a tensor to a rank."""
        return _Work([_collectives.send(tensors[0], rank, tag, self._ranks.plain)], tensors)

    def recv(self, tensors: Any, rank: int, tag: int) -> _Work:
        """Overwrite a tensor with what a rank sends."""
        return _Work([_collectives.receive(tensors[0], rank, tag, self._ranks.plain)], tensors)

    def barrier(self, opts: Any = None) -> _Work:
        """Ends when all ranks have started it."""
        return _Work([_collectives.barrier(self._ranks.plain)], [])


def _mismatch(rank: int, size: int, ranks: Sequence[int]) -> str:
    """What is wrong with the numbers that torch.distributed gives to this process."""
    mine = world()
    if not ranks and size != mine.size:
        return f"torch.distributed has {size} ranks, and MPI {mine.size}"
    theirs = ranks[rank] if ranks else rank
    if theirs != mine.rank:
        return f"this process is rank {theirs} of torch.distributed, and rank {mine.rank} of MPI"
    return ""


def _meet(options: Any, ranks: tuple[int, ...], number: int, offer: int) -> bool:
    """Meet the other ranks of a group to be, for the time of that number; returns whether all offer the same,
    and not 0.

    Raises:
        ValueError: MPI numbers a rank otherwise than torch.distributed. All ranks learn of it.
    """
    rank, size, store = options.group_rank, options.group_size, options.store
    wrong = _mismatch(rank, size, ranks)
    # With the number in all keys, as a store may remember earlier groups.
    store.add(f"wrong {number}", int(bool(wrong)))
    store.add(f"offer {number} {offer}", 1)
    store.set(f"seen {number} {rank}", "")
    if wrong:
        raise ValueError(f"backend {NAME}: {wrong}")
    store.wait([f"seen {number} {other}" for other in range(size)])
    if store.add(f"wrong {number}", 0) > 0:
        raise ValueError(f"backend {NAME}: ranks of torch.distributed and of MPI differ on another rank")
    return offer > 0 and store.add(f"offer {number} {offer}", 0) == size


@dataclass
class _Grant:
    """Communicators made for a group.

    Attributes:
        number: which meeting of these ranks it was: all of them know it.
        name: that torch.distributed has for whose they are now; empty if that was destroyed.
    """

    ranks: tuple[int, ...]
    number: int
    group: World
    name: str = ""


_grants: list[_Grant] = []
_meetings: Counter[tuple[int, ...]] = Counter()  # of ranks


def _take_back() -> None:
    """Take back what groups had that were destroyed. torch.distributed tells a backend nothing of that, and
    MPI frees communicators collectively, which such a moment is not: they are for groups to come."""
    module = dist.distributed_c10d
    names = module._world.pg_names if hasattr(module, "_world") else module._pg_names
    living = set(map(str, names.values()))
    for grant in _grants:
        if grant.name not in living:
            grant.name = ""


def _create(options: Any, unused: Any) -> ProcessGroup:
    """Make the group that torch.distributed asks for. Collective over its ranks.

    Raises:
        ValueError: MPI gives its ranks other numbers; or it is of some ranks, without init() called.
    """
    ranks = tuple(options.global_ranks_in_group)
    if not ranks:
        init()
    _take_back()
    grant = next((grant for grant in _grants if grant.ranks == ranks and not grant.name), None)
    _meetings[ranks] += 1
    agreed = _meet(options, ranks, _meetings[ranks], grant.number if grant else 0)
    if grant is None or not agreed:
        grant = _Grant(ranks, _meetings[ranks], group_of(ranks or range(size()), **AGREED))
        _grants.append(grant)
    grant.name = str(options.group_id)
    return ProcessGroup(grant.group)


def _forget() -> None:
    _flight.drain()
    _unclaimed.clear()
    _grants.clear()


_stores: list[Any] = []  # others may still ask when this rank is done


def _rendezvous(
    url: str, *unused: Any, timeout: timedelta = timedelta(minutes=5), **more: Any
) -> Iterator[Any]:
    """Meet over MPI: init_method="mpix://" needs no addresses, ports or ranks."""
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
    """Make the backend known to torch.distributed, as importing mpix_sparse.torch does. Not collective."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    how: dict[str, Any] = {"extended_api": True}
    if "devices" in inspect.signature(dist.Backend.register_backend).parameters:
        how["devices"] = ["cpu", "cuda"]
    dist.Backend.register_backend(NAME, _create, **how)
    dist.register_rendezvous_handler(SCHEME, _rendezvous)
    _mpi.before_end(_forget)
