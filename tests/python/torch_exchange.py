# SPDX-License-Identifier: BSD-3-Clause
"""Test alltoall, reducescatter, grouped calls and nonblocking broadcasts against plain sums and slices."""

import unittest
from unittest import mock

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse._library import library  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def whole(rank, rows=7, width=3, dtype=torch.float32):
    """Integral numbers that differ between ranks, about half of them zeros."""
    generator = torch.Generator().manual_seed(rank)
    numbers = torch.randint(1, 9, (rows, width), generator=generator)
    return (numbers * (torch.rand(rows, width, generator=generator) < 0.5)).to(dtype)


def splits(rank):
    """The number of rows that a rank sends to each; none to some."""
    return [(rank + other) % 3 for other in range(SIZE)]


def sent(rank):
    return whole(rank, sum(splits(rank)))


def received():
    """The rows that come to this rank."""
    return torch.cat([sent(rank).split(splits(rank))[RANK] for rank in range(SIZE)])


def share(rows):
    """This rank's rows of a number of rows."""
    counts = [rows // SIZE + (rank < rows % SIZE) for rank in range(SIZE)]
    return slice(sum(counts[:RANK]), sum(counts[: RANK + 1]))


class Alltoall(unittest.TestCase):
    def test_equal_and_given_splits(self):
        mine = torch.arange(2 * SIZE) + 100 * RANK
        out = hvd.alltoall(mine)
        wanted = torch.cat([100 * rank + torch.arange(2 * RANK, 2 * RANK + 2) for rank in range(SIZE)])
        self.assertTrue(torch.equal(out, wanted))
        for given in (splits(RANK), torch.tensor(splits(RANK), dtype=torch.int64)):
            out, rows = hvd.alltoall(sent(RANK), splits=given)
            self.assertTrue(torch.equal(out, received()))
            self.assertEqual(rows.tolist(), [splits(rank)[RANK] for rank in range(SIZE)])
        self.assertEqual(rows.dtype, torch.int64)

    def test_splits_that_are_no_integers(self):
        for given in ([1.5] * SIZE, torch.full((SIZE,), 2.0)):
            with self.assertRaisesRegex(ValueError, "must be a list or a tensor of integers"):
                hvd.alltoall(torch.arange(2 * SIZE), splits=given)

    def test_types(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.uint8, torch.bool):
            out, _ = hvd.alltoall(sent(RANK).to(dtype), splits(RANK))
            self.assertTrue(torch.equal(out, received().to(dtype)), dtype)

    def test_async(self):
        works = [hvd.alltoall_async(sent(RANK) * i, splits(RANK)) for i in range(4)]
        for i in range(4) if RANK % 2 else reversed(range(4)):
            self.assertTrue(torch.equal(hvd.synchronize(works[i])[0], received() * i))

    def test_sparse(self):
        """Elements of a sparse tensor arrive where those of the dense one do."""
        for sparse_dim in (1, 2):
            mine = sent(RANK).to_sparse(sparse_dim)
            out, rows = hvd.alltoall(mine, splits(RANK))
            self.assertEqual((out.is_sparse, out.sparse_dim()), (True, sparse_dim))
            self.assertTrue(torch.equal(out.to_dense(), received()))
            self.assertEqual(int(rows.sum()), len(received()))
        indices = torch.tensor([[2 * SIZE - 1, 0, 0]])  # not sorted, and twice the same
        doubled = torch.sparse_coo_tensor(indices, torch.tensor([5.0, 1.0, 2.0]), (2 * SIZE,))
        out = hvd.alltoall(doubled)
        wanted = torch.zeros(2 * SIZE)
        wanted[::2] = 3.0 if RANK == 0 else 0
        wanted[1::2] = 5.0 if RANK == SIZE - 1 else 0
        self.assertTrue(torch.equal(out.to_dense(), wanted))
        empty = torch.sparse_coo_tensor(torch.empty(1, 0, dtype=torch.int64), torch.empty(0, 4), (SIZE, 4))
        self.assertEqual(tuple(hvd.alltoall(empty).shape), (SIZE, 4))

    def test_gradient(self):
        """The gradient of a row is that of the row at the rank that received it."""
        mine = sent(RANK).requires_grad_()
        out, _ = hvd.alltoall(mine, splits(RANK))
        (out * (RANK + 1)).sum().backward()
        wanted = [torch.full((count, 3), rank + 1.0) for rank, count in enumerate(splits(RANK))]
        self.assertTrue(torch.equal(mine.grad, torch.cat(wanted)))

    def test_errors_on_one_rank(self):
        """An error on the last rank is an exception on all ranks, and calls work afterwards."""
        last = RANK == SIZE - 1
        wrong = [
            ("must be 4 rows in all", torch.ones(4, 3), [5] + [0] * (SIZE - 1)),
            ("needs one for each", torch.ones(4, 3), [4] + [0] * SIZE),
            ("must be a list or a tensor", torch.ones(4, 3), 7),
            ("cannot share equally", torch.ones(SIZE + 1, 3), None),
            ("has no dimension", torch.tensor(1.0), None),
        ]
        for sentence, tensor, given in wrong:
            if SIZE == 1 and given is None and tensor.dim():
                continue
            arguments = (tensor, given) if last else (torch.ones(2 * SIZE, 3), None)
            with self.subTest(sentence), self.assertRaisesRegex(
                ValueError, f"^(rank {SIZE - 1} has an error in its arguments: )?the .*{sentence}"
            ):
                hvd.alltoall(*arguments)
        for other in (torch.ones(SIZE, 4), torch.ones(SIZE, 3).double(), torch.ones(SIZE, 3).to_sparse()):
            if SIZE > 1:
                with self.assertRaisesRegex(ValueError, "rank 0 calls .*, and rank . calls"):
                    hvd.alltoall(other if last else torch.ones(SIZE, 3))
        with self.assertRaisesRegex(TypeError, "not list"):
            hvd.alltoall([1, 2])
        self.assertTrue(torch.equal(hvd.alltoall(sent(RANK), splits(RANK))[0], received()))


class Reducescatter(unittest.TestCase):
    def test_ops_and_types(self):
        for dtype in (torch.float32, torch.float64, torch.int64, torch.float16, torch.bfloat16):
            every = torch.stack([whole(rank, dtype=torch.float64) for rank in range(SIZE)])
            for op, total in (
                (hvd.Sum, every.sum(0)),
                (hvd.Max, every.amax(0)),
                (hvd.Min, every.amin(0)),
                (hvd.Product, every.prod(0)),
                (hvd.Average, every.mean(0)),
            ):
                if op is hvd.Average and dtype == torch.int64:
                    continue
                out = hvd.reducescatter(whole(RANK, dtype=dtype), op=op)
                self.assertEqual(out.dtype, dtype)
                torch.testing.assert_close(out.double(), total[share(7)].to(dtype).double())

    def test_factors_and_compression(self):
        total = sum(whole(rank) for rank in range(SIZE))[share(7)]
        how = {"op": hvd.Sum, "prescale_factor": 2.0, "postscale_factor": 0.25}
        self.assertTrue(torch.equal(hvd.reducescatter(whole(RANK), **how), total / 2))
        self.assertTrue(torch.equal(hvd.reducescatter(whole(RANK)), total / SIZE))
        out = hvd.reducescatter(whole(RANK), compression=hvd.Compression.bf16, op=hvd.Sum)
        self.assertTrue(torch.equal(out, total) and out.dtype == torch.float32)
        mine = whole(RANK)
        hvd.reducescatter(mine, **how)
        self.assertTrue(torch.equal(mine, whole(RANK)), "the input has changed")

    def test_sparse(self):
        """By a reduce_scatter, not by an allreduce."""
        name = "MPIX_Isparse_reduce_scatter_coo"
        with mock.patch.object(library, name, wraps=getattr(library, name)) as function:
            hvd.reducescatter(whole(RANK).to_sparse(1))
            self.assertEqual(function.call_count, 1)
        for rows in (0, 1, SIZE, 7, 3 * SIZE):
            for sparse_dim, op in ((1, hvd.Sum), (2, hvd.Average), (2, hvd.Max)):
                mine = [whole(rank, rows) for rank in range(SIZE)]
                out = hvd.reducescatter(mine[RANK].to_sparse(sparse_dim), op=op)
                every = torch.stack(mine)
                total = {hvd.Sum: every.sum, hvd.Average: every.mean, hvd.Max: lambda _: every.amax(0)}[op](0)
                self.assertEqual((out.is_sparse, out.sparse_dim()), (True, sparse_dim))
                self.assertTrue(out.is_coalesced())
                torch.testing.assert_close(out.to_dense(), total[share(rows)])

    def test_sparse_halves_in_order(self):
        """Between other calls on 16-bit floats, which start when their types have been compared."""
        for dtype in (torch.float16, torch.bfloat16):
            mine = whole(RANK, 9, dtype=dtype).to_sparse(1)
            total = sum(whole(rank, 9, dtype=dtype) for rank in range(SIZE))
            works = [
                hvd.allreduce_async(mine, op=hvd.Sum),
                hvd.reducescatter_async(mine, op=hvd.Sum),
                hvd.allreduce_async(mine, op=hvd.Sum),
            ]
            before, part, behind = [hvd.synchronize(work).to_dense() for work in works]
            self.assertTrue(torch.equal(before, total) and torch.equal(behind, total))
            self.assertTrue(torch.equal(part, total[share(9)]))

    def test_sparse_index_outside(self):
        """Behind the last row, which is not behind the rows that a call has for all ranks."""
        outside = torch.sparse_coo_tensor([[0]], [[1.0]], (2 * SIZE - 1, 1))
        if RANK == SIZE - 1:
            outside._indices()[0] = 2 * SIZE - 1
        with self.assertRaisesRegex(mpix_sparse.Error, "outside"):
            hvd.reducescatter(outside)

    def test_grouped_and_async(self):
        mine = [whole(RANK), whole(RANK, 4, 2, torch.float64), whole(RANK, 1, 5)]
        totals = [
            sum(each)
            for each in zip(*([whole(r), whole(r, 4, 2, torch.float64), whole(r, 1, 5)] for r in range(SIZE)))
        ]
        works = [
            hvd.grouped_reducescatter_async(mine, op=hvd.Sum),
            hvd.reducescatter_async(mine[0], op=hvd.Sum),
        ]
        for made in (hvd.synchronize(works[0]), hvd.grouped_reducescatter(mine, op=hvd.Sum)):
            for out, total in zip(made, totals):
                self.assertTrue(torch.equal(out, total[share(len(total))]))
        self.assertTrue(torch.equal(hvd.synchronize(works[1]), totals[0][share(7)]))

    def test_gradient(self):
        """With Horovod's factors."""
        for op, factor in ((hvd.Average, 1.0), (hvd.Sum, float(SIZE))):
            mine = whole(RANK).requires_grad_()
            (hvd.reducescatter(mine, op=op) * (RANK + 1)).sum().backward()
            counts = [7 // SIZE + (rank < 7 % SIZE) for rank in range(SIZE)]
            wanted = [torch.full((count, 3), factor * (rank + 1)) for rank, count in enumerate(counts)]
            self.assertTrue(torch.equal(mine.grad, torch.cat(wanted)))
        with self.assertRaisesRegex(RuntimeError, "op Max is not defined"):
            hvd.reducescatter(whole(RANK).requires_grad_(), op=hvd.Max).sum().backward()

    def test_errors_on_one_rank(self):
        last = RANK == SIZE - 1
        for sentence, wrong in (
            ("no Average of int64", torch.ones(4, 3, dtype=torch.int64)),
            ("has no dimension", torch.tensor(1.0)),
        ):
            with self.assertRaisesRegex(ValueError, f"{sentence}|rank {SIZE - 1} has"):
                hvd.reducescatter(wrong if last else torch.ones(4, 3))
        if SIZE > 1:
            with self.assertRaisesRegex(ValueError, "rank 0 calls .*, and rank . calls"):
                hvd.reducescatter(torch.ones(5 if last else 4, 3))
            with self.assertRaisesRegex(ValueError, "rank 0 calls .*, and rank . calls"):
                hvd.reducescatter(torch.ones(4, 3), op=hvd.Sum if last else hvd.Average)
        with self.assertRaisesRegex(ValueError, "Adasum"):
            hvd.reducescatter(torch.ones(4, 3), op=hvd.Adasum)


class Gathered(unittest.TestCase):
    def test_grouped_allgather(self):
        mine = [whole(RANK, RANK), whole(RANK, 2, 5, torch.float64), torch.tensor([RANK])]
        wanted = [
            torch.cat([whole(rank, rank) for rank in range(SIZE)]),
            torch.cat([whole(rank, 2, 5, torch.float64) for rank in range(SIZE)]),
            torch.arange(SIZE),
        ]
        for made in (hvd.grouped_allgather(mine), hvd.synchronize(hvd.grouped_allgather_async(mine))):
            self.assertEqual(len(made), 3)
            self.assertTrue(all(map(torch.equal, made, wanted)))
        self.assertEqual(hvd.grouped_allgather([]), [])

    def test_gradient(self):
        ours = [whole(RANK, RANK + 1).requires_grad_(), whole(RANK, 2).requires_grad_()]
        first, second = hvd.grouped_allgather(ours)
        (first.sum() * (RANK + 1) + second.sum()).backward()
        mean = (SIZE + 1) / 2
        self.assertTrue((ours[0].grad == mean).all() and (ours[1].grad == 1).all())

    def test_errors_on_one_rank(self):
        last = RANK == SIZE - 1
        if SIZE > 1:
            with self.assertRaisesRegex(ValueError, "rank 0 calls .*, and rank . calls"):
                hvd.grouped_allgather([torch.ones(2)] * (2 if last else 3))
            with self.assertRaisesRegex(ValueError, "rank 0 calls .*, and rank . calls"):
                hvd.grouped_allgather([torch.ones(2), torch.ones(3, 4 if last else 5)])
        with self.assertRaisesRegex(ValueError, f"cannot be joined|rank {SIZE - 1} has"):
            hvd.grouped_allgather([torch.ones(2), torch.tensor(1.0) if last else torch.ones(1)])


class Broadcast(unittest.TestCase):
    def test_async(self):
        root = SIZE - 1
        works = [hvd.broadcast_async(whole(RANK) * i, root) for i in range(3)]
        for i in reversed(range(3)) if RANK % 2 else range(3):
            self.assertTrue(torch.equal(hvd.synchronize(works[i]), whole(root) * i))
        mine = whole(RANK).t()
        work = hvd.broadcast_async_(mine, root, name="weights")
        self.assertIs(hvd.synchronize(work), mine)
        self.assertTrue(hvd.poll(work) and torch.equal(mine, whole(root).t()))
        self.assertEqual(hvd.synchronize(hvd.broadcast_async(torch.empty(0), 0)).numel(), 0)

    def test_sparse(self):
        """Also where ranks have different elements."""
        root, mine = SIZE - 1, whole(RANK).to_sparse(1)
        for made in (hvd.broadcast(mine, root), hvd.broadcast_(mine, root)):
            self.assertTrue(made.is_sparse and torch.equal(made.to_dense(), whole(root)))
        self.assertTrue(torch.equal(mine.to_dense(), whole(root)))

    def test_parameters_without_names(self):
        model = torch.nn.Linear(3, 2)
        for parameter in model.parameters():
            parameter.data.fill_(RANK)
        hvd.broadcast_parameters(list(model.parameters()), root_rank=SIZE - 1)
        self.assertTrue(all((parameter == SIZE - 1).all() for parameter in model.parameters()))


if __name__ == "__main__":
    main()
