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

from .. import _counts, _pending, _mpi
from . import _callbacks, _collectives, _exchange, _probe, _reduce_pieces
from ._agree import agree, describe, refuse, text_and_label
from ._allreduce import start_allreduce
from ._backend_work import AnySourceWork, BackendWork, unclaimed
from ._collective import collective
from ._broadcast import broadcast_object
from ._tensors import Average, Max, Min, Op, Product, Sum
from ._work import Work
from ._world import World, group_of, init, size, world

NAME = "mpix_sparse"
SCHEME = "mpix"
DEVICES = "cpu", "cuda"

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


def _op(theirs: Any) -> tuple[Op, float]:
    """A reduction of torch.distributed: ours, and the factor before it.

    Raises:
        ValueError: there is no such reduction here.
    """
    for known, ours in _OPS:
        if theirs == known:
            return ours, 1
    if theirs == getattr(dist.ReduceOp, "PREMUL_SUM", None):
        state = theirs.__getstate__() if hasattr(theirs, "__getstate__") else None
        if state is None:
            raise ValueError("this PyTorch does not tell the factor of PREMUL_SUM; multiply and use SUM")
        return Sum, float(state[1])
    raise ValueError(f"backend {NAME} has no reduction {theirs}")


def _is_async(opts: Any) -> bool:
    """False if torch.distributed waits for the call at once, which some versions tell."""
    return getattr(opts, "asyncOp", True)


class _Calls:
    """The calls of torch.distributed on some ranks, over MPI; reductions go through this library.

    Every method is collective over the group and starts calls, whose errors wait() raises. Calls on a group
    are made in the same order on all ranks. Tensors on a device are copied to the host and back.
    """

    _all_depths: World
    _coalesced: list[Work] | None = None  # calls between _start_coalescing() and _end_coalescing()
    _sequence_number = 0  # number of calls

    @property
    def ranks_of_calls(self) -> World:
        """The communicators for collective calls of this thread."""
        return self._all_depths.at_depth(_callbacks.depth())

    @property
    def _comms_of_messages(self) -> tuple[Any, Any]:
        """The communicators for messages between two ranks, and for descriptions of them."""
        ranks = self._all_depths
        return ranks.plain, ranks.of_type["bfloat16"] if ranks.checks else None

    def _compare_lengths(self, function: str, tensors: Any) -> None:
        """Check that all ranks pass as many tensors, which start as many calls. Collective; blocks."""
        if self.ranks_of_calls.checks and len(tensors) != 1:
            agree(f"{function}({len(tensors)} tensors)", "", self.ranks_of_calls)

    def getBackendName(self) -> str:  # noqa: N802  (PyTorch's name)
        """The name of the backend."""
        return NAME

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence_number

    def _set_sequence_number_for_group(self) -> None:
        self._sequence_number = 0

    def _work(self, works: Sequence[Work], tensors: Any) -> BackendWork:
        self._sequence_number += 1
        if self._coalesced is not None:
            self._coalesced.extend(works)
        return BackendWork(works, tensors)

    @collective
    def allreduce(self, tensors: Any, opts: Any = None) -> BackendWork:
        """Reduce tensors in place, dense or sparse COO; a sparse one becomes the union of all ranks'."""
        op, factor = (Sum, 1.0) if opts is None else _op(opts.reduceOp)
        scales = factor, 1
        self._compare_lengths("all_reduce_coalesced", tensors)
        works = [start_allreduce(each, each, op, self.ranks_of_calls, scales) for each in tensors]
        return self._work(works, tensors)

    allreduce_coalesced = allreduce_sparse = allreduce  # the last one in newer versions, for sparse tensors

    @collective
    def reduce(self, tensors: Any, opts: Any) -> BackendWork:
        """Reduce tensors; the root's are overwritten."""
        refuse(_collectives.root_problem(opts.rootRank, self.ranks_of_calls))
        (op, factor), mine = _op(opts.reduceOp), self.ranks_of_calls.rank == opts.rootRank
        sums, scales = tensors if mine else [tensor.clone() for tensor in tensors], (factor, 1)
        works = []
        for each in sums:
            group = text_and_label(describe("reduce", each, f"root {opts.rootRank}", op.name))
            works.append(start_allreduce(each, each, op, self.ranks_of_calls, scales, group))
        return self._work(works, tensors)

    @collective
    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any) -> BackendWork:
        """Reduce lists of tensors, of which each rank gets its own."""
        op, factor = _op(opts.reduceOp)
        how = op, factor, self.ranks_of_calls
        works = [_reduce_pieces.reduce_scatter(*pair, *how) for pair in zip(outputs, inputs)]
        return self._work(works, outputs)

    @collective
    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any) -> BackendWork:
        """Reduce tensors, of which each rank gets an equal part."""
        op, factor = _op(opts.reduceOp)
        self._compare_lengths("reduce_scatter_tensor_coalesced", inputs)
        how = op, factor, self.ranks_of_calls
        works = [_reduce_pieces.reduce_scatter_tensor(*pair, *how) for pair in zip(outputs, inputs)]
        return self._work(works, outputs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced  # its name in newer versions

    def _reduce_scatter_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> BackendWork:
        return self.reduce_scatter_tensor_coalesced([output], [tensor], opts)

    reduce_scatter_single = _reduce_scatter_base  # its name in newer versions

    @collective
    def broadcast(self, tensors: Any, opts: Any) -> BackendWork:
        """Overwrite tensors with the root's."""
        root, how = opts.rootRank, (self.ranks_of_calls, _is_async(opts))
        return self._work([_collectives.broadcast(each, root, *how) for each in tensors], tensors)

    @collective
    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> BackendWork:
        """Put each rank's tensor into the outputs of all."""
        pairs, how = zip(outputs, inputs), (self.ranks_of_calls, _is_async(opts))
        return self._work([_collectives.allgather(*pair, *how) for pair in pairs], outputs)

    @collective
    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> BackendWork:
        """Put each rank's tensors into outputs[rank] of all."""
        if any(len(tensors) != len(inputs) for tensors in outputs):
            raise ValueError(f"the output lists need {len(inputs)} tensors each, as the input list has")
        self._compare_lengths("all_gather_coalesced", inputs)
        columns, ranks = (
            [tensors[i] for tensors in outputs] for i in range(len(inputs))
        ), self.ranks_of_calls
        works = [_collectives.allgather(column, each, ranks) for column, each in zip(columns, inputs)]
        return self._work(works, outputs)

    @collective
    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> BackendWork:
        """Concatenate each tensor of all ranks in an output."""
        self._compare_lengths("all_gather_into_tensor_coalesced", inputs)
        pairs, how = zip(outputs, inputs), (self.ranks_of_calls, _is_async(opts))
        return self._work([_collectives.allgather_single(*pair, *how) for pair in pairs], outputs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced  # its name in newer versions

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> BackendWork:
        return self.allgather_into_tensor_coalesced([output], [tensor], opts)

    all_gather_single = _allgather_base  # its name in newer versions

    @collective
    def gather(self, outputs: Any, inputs: Any, opts: Any) -> BackendWork:
        """Put each rank's tensor into the root's outputs."""
        lists = outputs[0] if outputs else []
        work = _collectives.gather(lists, inputs[0], opts.rootRank, self.ranks_of_calls)
        return self._work([work], outputs)

    @collective
    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> BackendWork:
        """Concatenate each rank's tensor in the root's output."""
        work = _collectives.gather_single(output, tensor, opts.rootRank, self.ranks_of_calls)
        return self._work([work], [output])

    @collective
    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> BackendWork:
        """Overwrite each rank's tensor with the root's input for that rank."""
        pieces = inputs[0] if inputs else []
        work = _collectives.scatter(outputs[0], pieces, opts.rootRank, self.ranks_of_calls)
        return self._work([work], outputs)

    @collective
    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> BackendWork:
        """Send inputs[rank] to each rank, dense or sparse COO."""
        return self._work([_exchange.all_to_all(outputs, inputs, self.ranks_of_calls)], outputs)

    @collective
    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> BackendWork:
        """Send a part of a tensor to each rank."""
        splits = output_splits, input_splits
        work = _exchange.all_to_all_single(output, tensor, *splits, self.ranks_of_calls)
        return self._work([work], [output])

    all_to_all_single = alltoall_base  # its name in newer versions

    def send(self, tensors: Any, rank: int, tag: int) -> BackendWork:
        """Send a tensor to a rank."""
        return self._work([_collectives.send(tensors[0], rank, tag, *self._comms_of_messages)], tensors)

    def recv(self, tensors: Any, rank: int, tag: int) -> BackendWork:
        """Overwrite a tensor with the tensor that a rank sends."""
        return self._work([_collectives.receive(tensors[0], rank, tag, *self._comms_of_messages)], tensors)

    def recv_anysource(self, tensors: Any, tag: int) -> BackendWork:
        """Overwrite a tensor with a tensor that any rank sends."""
        return AnySourceWork(_probe.AnySource(tensors[0], tag, *self._comms_of_messages), tensors)

    @collective
    def barrier(self, opts: Any = None) -> BackendWork:
        """Start a barrier."""
        return self._work([_collectives.barrier(self.ranks_of_calls, _is_async(opts))], [])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks, but not longer than a timeout; see _probe.monitored_barrier()."""
        limit = getattr(timeout, "timeout", timeout) or dist.default_pg_timeout
        comm = self.ranks_of_calls.of_type["float16"]  # on which no other messages are sent
        _probe.monitored_barrier(comm, limit.total_seconds(), wait_all_ranks)

    def _start_coalescing(self, *unused: Any) -> None:
        self._coalesced = []

    def _end_coalescing(self, *unused: Any) -> BackendWork:
        works, self._coalesced = self._coalesced or [], None
        return BackendWork(works, [])

    start_coalescing, end_coalescing = _start_coalescing, _end_coalescing  # the names in a Backend


_Base = getattr(torch._C._distributed_c10d, "Backend", object)


class Backend(_Calls, _Base):  # type: ignore[misc, valid-type]
    """The backend of a process group, which C++ code calls. It exists in newer versions."""

    # The inherited properties would call themselves.
    supports_splitting = supports_coalescing = supports_shrinking = property(lambda self: False)
    supports_reconfigure = supports_window = _supports_time_estimate = property(lambda self: False)
    options = property(lambda self: _Base.Options(NAME))

    def __init__(self, ranks: World) -> None:
        _Base.__init__(self, ranks.rank, ranks.size)
        self._all_depths = ranks


def _allows_backends() -> bool:
    """True if this version of PyTorch allows backends that are written in Python."""
    try:
        _Base.__init__(Backend.__new__(Backend), 0, 1)
    except TypeError:
        return False
    return True


_BACKENDS = _allows_backends()


class ProcessGroup(_Calls, dist.ProcessGroup):
    """A process group over MPI, which torch.distributed calls."""

    def __init__(self, ranks: World, store: Any) -> None:
        dist.ProcessGroup.__init__(self, *([store] if _BACKENDS else []), ranks.rank, ranks.size)
        self._all_depths = ranks
        if _BACKENDS:  # C++ code looks for the group's name and calls in the backend of a device
            self._backend, kind = Backend(ranks), dist.ProcessGroup.BackendType.CUSTOM
            for device in DEVICES:
                self._register_backend(torch.device(device), kind, self._backend)
            self._set_default_backend(kind)


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
    with _counts.part_call(_mpi.WORLD, ranks or range(size), "new_group"):
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


def _is_mixed(options: Any) -> bool:
    """True if a group to be created has another backend too, for other devices.

    Raises:
        ValueError: this version of PyTorch does not allow that.
    """
    group = getattr(options, "process_group", None)
    mixed = group is not None and (group.name() != "custom" or bool(group._device_types))
    if mixed and not _BACKENDS:
        raise ValueError(
            f"backend {NAME} cannot be one of several with this version of PyTorch; "
            f'pass backend="{NAME}", whose tensors may be on any device'
        )
    return mixed


def _create(options: Any, unused: Any) -> ProcessGroup | Backend:
    """Create a group for torch.distributed, or its backend for a device. Collective over its ranks.

    Raises:
        ValueError: MPI numbers the ranks differently; or the group has some ranks only, before init().
    """
    ranks, mixed = tuple(options.global_ranks_in_group), _is_mixed(options)
    if not ranks:
        init()
    _reclaim()
    cached = next((cached for cached in _cached_groups if cached.ranks == ranks and not cached.name), None)
    _creations[ranks] += 1
    agreed = _compare_offers(options, ranks, _creations[ranks], cached.number if cached else 0)
    if cached is None or not agreed:
        cached = _CachedGroup(ranks, _creations[ranks], group_of(ranks or range(size())))
        _cached_groups.append(cached)
    cached.name = str(options.group_id)
    return Backend(cached.group) if mixed else ProcessGroup(cached.group, options.store)


def _cleanup() -> None:
    _pending.wait_for_all()
    unclaimed.clear()
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
        how["devices"] = list(DEVICES)
    dist.Backend.register_backend(NAME, _create, **how)
    dist.register_rendezvous_handler(SCHEME, _rendezvous)
    _mpi.add_finalize_hook(_cleanup)
