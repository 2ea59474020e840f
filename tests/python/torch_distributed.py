# SPDX-License-Identifier: BSD-3-Clause
"""Test torch.distributed: the backend mpix_sparse gives Gloo's results, and also supports sparse tensors."""

import itertools
import os
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
from mpix_sparse.torch import _world  # noqa: E402
from mpix_sparse.torch._tensors import sparse_of  # noqa: E402

dist = torch.distributed
if not dist.is_available():
    need("torch.distributed.distributed_c10d", "python3-torch")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
WORDS, WIDTH = 200, 6


def dense(rank=RANK, shape=(30, 20), dtype=torch.float32):
    """Small integers, mostly zeros."""
    generator = torch.Generator().manual_seed(rank)
    values = torch.randint(1, 4, shape, generator=generator)
    return (values * (torch.rand(shape, generator=generator) < 0.2)).to(dtype)


def rows(rank=RANK):
    """A coalesced gradient of an embedding, with more rows on higher ranks and none on rank 1."""
    nnz = 0 if rank == 1 else 10 + 5 * rank
    generator = torch.Generator().manual_seed(rank)
    indices = torch.randint(0, WORDS, (1, nnz), generator=generator)
    values = torch.randint(1, 9, (nnz, WIDTH), generator=generator).float()
    return sparse_of(indices, values, torch.empty(WORDS, WIDTH)).coalesce()


def nothing():
    return sparse_of(torch.empty(1, 0, dtype=torch.int64), torch.empty(0, WIDTH), torch.empty(WORDS, WIDTH))


def far(rank):
    """As rows(), with an index out of bounds on the last rank."""
    where = WORDS if rank == SIZE - 1 else 0
    return sparse_of(torch.tensor([[where]]), torch.ones(1, WIDTH), torch.empty(WORDS, WIDTH))


class Group(unittest.TestCase):
    def same(self, call):
        """Check that `call` gives equal tensors with both backends."""
        for ours, theirs in zip(call(None), call(GLOO)):
            self.assertEqual(ours.layout, theirs.layout)
            self.assertTrue(torch.equal(ours.to_dense(), theirs.to_dense()))

    def test_numbers(self):
        self.assertEqual((RANK, SIZE), (mpix_sparse.rank(), mpix_sparse.size()))
        self.assertEqual(dist.get_backend().lower(), "mpix_sparse")

    def test_allreduce(self):
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            for make in (dense, lambda: dense(dtype=torch.int64), lambda: dense().t()):

                def call(group, op=op, make=make):
                    tensor = make()
                    dist.all_reduce(tensor, op=op, group=group)
                    return [tensor]

                self.same(call)

    def test_average(self):
        tensor = dense()
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        self.assertTrue(torch.equal(tensor, sum(dense(rank) for rank in range(SIZE)) / SIZE))

    def test_sparse_allreduce_and_reduce(self):
        def call(group):
            tensor = rows()
            dist.all_reduce(tensor, group=group)
            return [tensor]

        self.same(call)
        for root, make in itertools.product(range(SIZE), (rows, dense)):
            tensor = make()
            dist.reduce(tensor, root)
            ours = range(SIZE) if RANK == root else [RANK]
            self.assertTrue(torch.equal(tensor.to_dense(), sum(make(rank).to_dense() for rank in ours)))

    def test_broadcast(self):
        def call(group):
            tensor = dense().t()
            dist.broadcast(tensor, SIZE - 1, group=group)
            return [tensor]

        self.same(call)
        tensor = rows() if RANK == 0 else nothing()
        dist.broadcast(tensor, 0)
        self.assertTrue(torch.equal(tensor.to_dense(), rows(0).to_dense()))

    def test_sparse_broadcast_leaves_other_tensors(self):
        """The source of a tensor stays unchanged, even with the root's number of elements."""
        indices, values = torch.tensor([[RANK]]), torch.full((1, WIDTH), float(RANK))
        tensor = sparse_of(indices, values, torch.empty(WORDS, WIDTH))
        dist.broadcast(tensor, SIZE - 1)
        self.assertEqual(tensor._indices().tolist(), [[SIZE - 1]])
        self.assertTrue((tensor._values() == SIZE - 1).all())
        self.assertEqual(indices.tolist(), [[RANK]])
        self.assertTrue((values == RANK).all())

    def test_sparse_broadcast_of_several_shapes(self):
        if SIZE == 1:
            return
        tensor = torch.sparse_coo_tensor([[2]], [1.0], (WORDS if RANK == 0 else 3,))
        with self.assertRaisesRegex(ValueError, "rank 0 calls .*, and rank . calls"):
            dist.broadcast(tensor, 0)
        self.assertEqual(tensor._indices().tolist(), [[2]])

    def test_allgather(self):
        def call(group):
            outs = [torch.empty(30, 20) for _ in range(SIZE)]
            dist.all_gather(outs, dense(), group=group)
            return outs

        self.same(call)
        outs = [nothing() for _ in range(SIZE)]
        dist.all_gather(outs, rows())
        for rank, out in enumerate(outs):
            self.assertTrue(torch.equal(out.to_dense(), rows(rank).to_dense()))

    def test_gather_and_scatter(self):
        root = SIZE - 1
        outs = [torch.empty(30, 20) for _ in range(SIZE)] if RANK == root else None
        dist.gather(dense(), outs, root)
        back = torch.empty(30, 20)
        dist.scatter(back, outs, root)
        self.assertTrue(torch.equal(back, dense()))

    def test_outputs_of_another_size(self):
        """No output is written past its end: a short one is refused before MPI is called."""
        mine, other = torch.ones(2000), torch.zeros(1)
        outs = [torch.empty(2000) for _ in range(SIZE)]
        for call in (
            lambda: dist.all_gather([*outs, other], mine),
            lambda: dist.all_gather([*outs[1:], other], mine),
            lambda: dist.all_gather([rows(), *map(rows, range(SIZE))], rows()),
        ):
            with self.assertRaisesRegex(ValueError, "the output list "):
                call()
        gather = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)
        with self.assertRaisesRegex(ValueError, f"has 1 x float32; those of all ranks make {2000 * SIZE} x"):
            gather(other, mine)
        dist.all_gather(outs, mine)

    def test_wrong_on_the_root(self):
        """All ranks get an exception if the root's tensors do not match theirs."""
        root, mine = SIZE - 1, torch.ones(1000)
        few, small = ([torch.ones(n) for _ in range(ranks)] for n, ranks in ((1000, SIZE + 1), (1, SIZE)))
        for pieces in (few, small):
            with self.assertRaisesRegex(ValueError, "the output list has|rank . has an error"):
                dist.gather(mine, pieces if RANK == root else None, root)
            with self.assertRaisesRegex(ValueError, "the input list has|rank . has an error"):
                dist.scatter(mine, pieces if RANK == root else None, root)
        if SIZE > 1:
            odd = torch.ones(999 if RANK == 0 else 1000)
            pieces = [odd] * SIZE if RANK == root else None
            with self.assertRaisesRegex(
                ValueError, "rank 0 calls .* of 999 elements., and rank . calls .* of 1000 "
            ):
                dist.gather(odd, [out.clone() for out in pieces] if pieces else None, root)
            with self.assertRaisesRegex(
                ValueError, "rank 0 calls .* of 999 elements., and rank . calls .* of 1000 "
            ):
                dist.scatter(odd, pieces, root)
        self.assertTrue((mine == 1).all())

    def test_scatter_of_several_shapes(self):
        """Only the numbers of elements count, as in gather()."""
        shapes = [(6,), (2, 3), (3, 2), (6, 1)]
        pieces = [torch.full(shapes[rank % 4], float(rank)) for rank in range(SIZE)] if RANK == 0 else None
        mine = torch.zeros(3, 2)
        dist.scatter(mine, pieces, 0)
        self.assertTrue((mine == RANK).all())

    def test_sparse_on_the_root_only(self):
        """Other ranks do not wait for a root that cannot send its tensor."""
        sparse, mine = torch.zeros(4).to_sparse(), torch.zeros(4)
        pieces = [mine] * (SIZE - 1) + [sparse] if RANK == 0 else None
        with self.assertRaisesRegex(ValueError, "of layout torch.sparse_coo|rank 0 has an error"):
            dist.scatter(mine, pieces, 0)
        with self.assertRaisesRegex(ValueError, "of layout torch.sparse_coo|rank 0 has an error"):
            dist.gather(mine, pieces, 0)
        with self.assertRaisesRegex(
            (TypeError, ValueError), "of layout torch.sparse_coo|rank 0 has an error"
        ):
            dist.gather(sparse if RANK == 0 else mine, [mine] * SIZE if RANK == 0 else None, 0)

    def test_objects(self):
        found = [None] * SIZE
        dist.all_gather_object(found, {"rank": RANK, "text": "x" * RANK})
        self.assertEqual([item["text"] for item in found], ["x" * rank for rank in range(SIZE)])

    def test_send(self):
        tensor = torch.full((3,), float(RANK))
        sending = dist.isend(tensor, (RANK + 1) % SIZE)
        got = torch.empty(3)
        dist.recv(got, (RANK - 1) % SIZE)
        sending.wait()
        self.assertTrue((got == (RANK - 1) % SIZE).all())

    def test_sparse_where_only_dense_ones_travel(self):
        other, outs = (RANK + 1) % SIZE, [rows()] * SIZE if RANK == 0 else None
        for call in (
            lambda: dist.isend(rows(), other),
            lambda: dist.irecv(rows(), other),
            lambda: dist.gather(rows(), outs, 0),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), "torch.sparse_coo cannot be sent here"):
                call()

    def test_in_flight(self):
        tensors = [dense(RANK + i) for i in range(4)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        total = works[3].get_future().then(lambda future: future.value()[0].sum())
        for i in reversed(range(3)):
            works[i].wait()
            self.assertTrue(works[i].is_completed())
            self.assertTrue(torch.equal(tensors[i], sum(dense(rank + i) for rank in range(SIZE))))
        self.assertEqual(total.wait(), sum(dense(rank + 3).sum() for rank in range(SIZE)))

    def test_part_of_the_ranks(self):
        some = sorted({0, SIZE - 1})
        group = dist.new_group(some)
        tensor = torch.ones(3)
        if RANK in some:
            dist.all_reduce(tensor, group=group)
            with self.assertRaisesRegex(mpix_sparse.Error, f"indices holds {WORDS}"):
                dist.all_reduce(far(RANK), group=group)
        self.assertTrue((tensor == (len(some) if RANK in some else 1)).all())
        dist.barrier()

    def test_groups_come_and_go(self):
        """A group reuses the communicators of a destroyed group of its ranks: MPI has a few thousand."""
        some = sorted({0, SIZE - 1})
        had = []
        for i in range(4):
            group, other = dist.new_group(some), dist.new_group(some)
            if RANK in some:
                for each, number in ((group, i), (other, i + 1)):
                    tensor = torch.full((3,), float(number))
                    dist.all_reduce(tensor, group=each)
                    self.assertTrue((tensor == number * len(some)).all())
                dist.destroy_process_group(group)
                dist.destroy_process_group(other)
            had.append(len(_world._groups))
        self.assertEqual(had, 4 * had[:1])

    def test_wrong_on_one_rank(self):
        with self.assertRaisesRegex(mpix_sparse.Error, f"indices holds {WORDS}"):
            dist.all_reduce(far(RANK))
        future = dist.all_reduce(far(RANK), async_op=True).get_future()
        with self.assertRaisesRegex(RuntimeError, f"indices holds {WORDS}"):
            future.wait()

    def test_sparse_on_one_rank(self):
        """All ranks get an error, even if the dense tensor is so small that MPI could reduce it at once."""
        for count in (2, WORDS, 50 * WORDS) if SIZE > 1 else ():
            for dtype in (torch.float32, torch.bfloat16):
                tensor = torch.ones(count, WIDTH, dtype=dtype)
                dist.all_reduce(tensor)
                text = "rank 0 calls allreduce.Sum, sparse .*, and rank 1 calls allreduce.Sum, .*float.* of"
                with self.assertRaisesRegex(mpix_sparse.Error, text):
                    dist.all_reduce(tensor.to_sparse(1) if RANK == 0 else tensor)

    def test_other_numbers_than_mpi(self):
        from mpix_sparse.torch import _backend

        options = dist.distributed_c10d._DistributedBackendOptions()
        options.store = dist.PrefixStore("wrong", dist.distributed_c10d._get_default_store())
        options.global_ranks_in_group = []
        options.group_rank, options.group_size = {0: 1, 1: 0}.get(RANK, RANK), SIZE
        if SIZE > 1:
            with self.assertRaisesRegex(
                ValueError, "is rank . of torch.distributed, and rank . of|on another"
            ):
                _backend._create(options, None)
        options.group_rank, options.group_size = RANK, SIZE + 1
        with self.assertRaisesRegex(ValueError, f"has {SIZE + 1} ranks, and MPI {SIZE}"):
            _backend._create(options, None)


if __name__ == "__main__":
    main()
