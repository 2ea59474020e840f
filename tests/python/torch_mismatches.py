# SPDX-License-Identifier: BSD-3-Clause
"""Test that tensors whose sizes, types, ops or layouts differ between ranks are exceptions on all ranks
within seconds."""

import os
import time
import unittest

from common import main, need

torch = need("torch", "python3-torch")
need("torch.distributed.distributed_c10d", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402

dist = torch.distributed
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
ODD = RANK == SIZE - 1  # the rank whose tensor differs
COUNTS = 1, 4, 511, 512, 513, 4097, 1000000
FEW = 1, 511, 513, 1000000  # on both sides of 2048 bytes, up to which the C library checks nothing
SECONDS = 5


def of_group(tensor, op=hvd.Sum):
    known = {"Sum": dist.ReduceOp.SUM, "Max": dist.ReduceOp.MAX, "Min": dist.ReduceOp.MIN}
    dist.all_reduce(tensor, known[op.name])


CALLS = (
    lambda tensor, op=hvd.Sum: hvd.allreduce(tensor, op=op),
    lambda tensor, op=hvd.Sum: hvd.synchronize(hvd.allreduce_async_(tensor, op=op)),
    of_group,
)


for each in CALLS:
    each(torch.ones(3))  # the first call imports parts of PyTorch


@unittest.skipIf(SIZE == 1, "one rank has no other")
class Mismatches(unittest.TestCase):
    def refused(self, text, tensor, op=hvd.Sum):
        """Check that all calls fail on this rank, and that the next ones succeed."""
        for call in CALLS:
            start = time.monotonic()
            with self.assertRaisesRegex(mpix_sparse.Error, text):
                call(tensor, op)
            self.assertLess(time.monotonic() - start, SECONDS)
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                good = torch.ones(3, dtype=dtype)
                of_group(good)
                self.assertEqual(hvd.allreduce(good, op=hvd.Sum).tolist(), 3 * [float(SIZE**2)])

    def test_counts(self):
        for dtype in (torch.float32, torch.bfloat16):
            for count in COUNTS:
                mine = torch.ones(2 * count + 700 if ODD else count, dtype=dtype)
                self.refused("count differs between ranks: .* on rank . and .* on rank", mine)

    def test_types(self):
        for pair in ((torch.float64, torch.float32), (torch.int32, torch.float32)):
            for count in COUNTS:
                mine = torch.ones(count, dtype=pair[ODD])
                self.refused("datatype differs between ranks: .* on rank . and .* on rank", mine)

    def test_halves(self):
        pairs = (
            (torch.float16, torch.float32),
            (torch.float32, torch.bfloat16),
            (torch.float16, torch.bfloat16),
            (torch.int16, torch.bfloat16),
        )
        for pair in pairs:
            for count in COUNTS:
                mine = torch.ones(count, dtype=pair[ODD])
                self.refused("differ.* on rank . and .* on rank .*are compared as uint16 and int16", mine)

    def test_ops(self):
        for dtype in (torch.float32, torch.float16):
            for count in COUNTS:
                mine = torch.ones(count, dtype=dtype)
                text = "op differs between ranks: MPI_.* on rank . and MPI_.* on rank"
                self.refused(text, mine, hvd.Max if ODD else hvd.Sum)

    def test_layouts(self):
        for dtypes in 2 * [torch.float32], 2 * [torch.bfloat16], (torch.float32, torch.float16):
            for count in COUNTS[:-1]:
                mine = torch.ones(count, dtype=dtypes[ODD])
                self.refused("differ", mine.to_sparse() if ODD else mine)


GATHER_SINGLE = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)


def all_gather(tensor, later=False):
    work = dist.all_gather([torch.empty_like(tensor) for _ in range(SIZE)], tensor, async_op=later)
    return work.wait() if later else None


UNREDUCED = {
    "hvd.broadcast": lambda tensor: hvd.broadcast(tensor, 0),
    "hvd.broadcast_async_": lambda tensor: hvd.synchronize(hvd.broadcast_async_(tensor, 0)),
    "broadcast": lambda tensor: dist.broadcast(tensor, 0),
    "broadcast, async": lambda tensor: dist.broadcast(tensor, 0, async_op=True).wait(),
    "all_gather": all_gather,
    "all_gather, async": lambda tensor: all_gather(tensor, True),
    "all_gather_into_tensor": lambda tensor: GATHER_SINGLE(tensor.new_empty(SIZE * len(tensor)), tensor),
}


@unittest.skipIf(SIZE == 1, "one rank has no other")
class Unreduced(unittest.TestCase):
    """Broadcasts and gathers, which MPI would make with wrong results or abort."""

    def refused(self, text, call, tensor):
        start = time.monotonic()
        with self.assertRaisesRegex(ValueError, text):
            call(tensor)
        self.assertLess(time.monotonic() - start, SECONDS)
        good = torch.full((3,), float(RANK))
        dist.broadcast(good, 1)
        self.assertEqual(good.tolist(), [1.0] * 3)
        all_gather(good)
        dist.barrier()

    def test_counts(self):
        for name, call in UNREDUCED.items():
            for count in FEW:
                other = 2 * count + 700
                low, high = (f"{number} on rank" for number in (count, other))
                text = f"count differs between ranks: ({low} . and {high}|{high} . and {low})"
                with self.subTest(name, count=count):
                    self.refused(text, call, torch.ones(other if ODD else count))

    def test_types(self):
        for name, call in UNREDUCED.items():
            for pair in ((torch.float64, torch.float32), (torch.float16, torch.bfloat16)):
                low, high = (f"{str(each)[6:]} on rank" for each in pair)
                for count in FEW:
                    text = f"datatype differs between ranks: ({low} . and {high}|{high} . and {low})"
                    with self.subTest(name, count=count, pair=pair):
                        self.refused(text, call, torch.ones(count, dtype=pair[ODD]))

    def test_others(self):
        """Roots, layouts and functions."""
        dense, sparse = torch.ones(600), torch.ones(600).to_sparse()
        for text, here, there in (
            ("root", lambda: hvd.broadcast(dense, 0), lambda: hvd.broadcast(dense, 1)),
            ("layout", lambda: dist.broadcast(dense, 0), lambda: dist.broadcast(sparse, 0)),
            ("layout", lambda: all_gather(dense), lambda: all_gather(sparse)),
            ("function", lambda: all_gather(dense), lambda: dist.broadcast(dense, 0)),
            ("function", hvd.barrier, lambda: hvd.broadcast(dense, 0)),
            (
                "function",
                lambda: dist.gather(dense, None if RANK else [dense.clone()] * SIZE, 0),
                dist.barrier,
            ),
        ):
            with self.subTest(text):
                text = f"argument {text} differs between ranks: .* on rank 0 and .* on rank {SIZE - 1}"
                self.refused(text, lambda _: (there if ODD else here)(), None)

    def test_no_rank(self):
        """A root that is not a rank, on all ranks and on one."""
        for root in (-1, SIZE):
            text = f"the root is {root}, and ranks are 0 to {SIZE - 1}|rank {SIZE - 1} has an error"
            self.refused(text, lambda tensor, at=root: hvd.broadcast(tensor, at), torch.ones(4))
            self.refused(text, lambda tensor, at=root: hvd.broadcast(tensor, at if ODD else 0), torch.ones(4))

    def test_wrong_list(self):
        """A list that is wrong on one rank."""
        outputs = [torch.empty(4) for _ in range(SIZE - ODD)]
        text = "output list has|rank . has an error in its arguments"
        self.refused(text, lambda tensor: dist.all_gather(outputs, tensor), torch.ones(4))

    def test_rows_of_allgather(self):
        """First dimensions may differ, the others may not."""
        for count in FEW:
            rows = RANK * count
            self.assertEqual(len(hvd.allgather(torch.ones(rows, 2))), count * SIZE * (SIZE - 1) // 2)
            with self.assertRaisesRegex(
                ValueError, r"rows differ between ranks: float32 of \(2,\) on rank 0"
            ):
                hvd.allgather(torch.ones(count, 3 if ODD else 2))

    def test_averages(self):
        """For the library an average is a sum with a label."""
        for dtype in (torch.float32, torch.bfloat16):
            for count in FEW:
                op = (hvd.Sum, hvd.Average)[ODD]
                text = "argument op differs between ranks: Sum on rank 0 and Average on rank"
                for call in (
                    lambda tensor: hvd.allreduce(tensor, op=op),
                    lambda tensor: hvd.allreduce(tensor.to_sparse(), op=op),
                    lambda tensor: hvd.synchronize(hvd.grouped_allreduce_async([tensor], op=op)),
                ):
                    with self.assertRaisesRegex(mpix_sparse.Error, text):
                        call(torch.ones(count, dtype=dtype))
                    self.assertEqual(hvd.allreduce(torch.ones(3), op=hvd.Average).tolist(), [1.0] * 3)

    def test_adasum(self):
        """Against another op, of dense and of sparse tensors, also of one element."""
        for mine in torch.ones(3), torch.ones(3).to_sparse(), torch.ones(1, dtype=torch.float64).to_sparse():
            op, text = hvd.Average, "ranks call different functions: .* and Adasum"
            if mine.is_sparse:
                text = "count differs" if len(mine) > 1 else "op differs between ranks: Average .* Adasum"
            if ODD:
                op, mine = hvd.Adasum, torch.ones(3)
            with self.assertRaisesRegex(mpix_sparse.Error, text):
                hvd.allreduce(mine, op=op)

    def test_optimizers(self):
        weight = torch.nn.Parameter(torch.ones(3))
        op = (hvd.Sum, hvd.Average)[ODD]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], 0.1), [("weight", weight)], op=op)
        with self.assertRaisesRegex(
            ValueError, "ops .* differ between ranks: Sum on rank 0, and Average on rank"
        ):
            weight.sum().backward()
            optimizer.step()

    def test_meanwhile(self):
        """Calls whose comparison waits for other ranks start in order, whatever each rank waits for first."""
        tensors = [torch.full((count,), float(RANK)) for count in COUNTS]
        works = [dist.broadcast(each, i % SIZE, async_op=True) for i, each in enumerate(tensors)]
        total = dist.all_reduce(torch.ones(3), async_op=True)
        if RANK > 0:
            total.wait()
        dist.barrier()
        for i in torch.randperm(len(works), generator=torch.Generator().manual_seed(RANK)).tolist():
            works[i].wait()
            self.assertTrue((tensors[i] == i % SIZE).all())
        if RANK == 0:
            total.wait()


class Setting(unittest.TestCase):
    """Programs whose user has set MPIX_SPARSE_FORWARD compare nothing in these calls."""

    def test_set(self):
        from mpix_sparse.torch import _world

        ranks = _world.world()
        self.assertEqual(ranks.checks, SIZE > 1)
        other = _world.World(None, forward="63")
        self.assertFalse(other.checks)
        other.free()


class Halves(unittest.TestCase):
    def test_any_order(self):
        """Calls on all types are waited for in an order of each rank."""
        for step in range(20):
            types = [(torch.float32, torch.float16, torch.bfloat16)[(step * i) % 3] for i in range(7)]
            tensors = [torch.full((5 + 300 * i,), 1.0 + i, dtype=dtype) for i, dtype in enumerate(types)]
            works = [hvd.allreduce_async_(tensor, op=hvd.Sum) for tensor in tensors]
            for i in torch.randperm(7, generator=torch.Generator().manual_seed(10 * step + RANK)):
                hvd.synchronize(works[i])
                self.assertTrue((tensors[i] == (1.0 + i) * SIZE).all())

    def test_meanwhile(self):
        """A rank that waits for a barrier makes progress on its calls."""
        for dtype in torch.float32, torch.bfloat16:
            for count in 3, 5000:
                tensor = torch.ones(count, dtype=dtype)
                work = hvd.allreduce_async_(tensor, op=hvd.Sum)
                if RANK > 0:
                    hvd.synchronize(work)
                dist.barrier()
                if RANK == 0:
                    hvd.synchronize(work)
                self.assertTrue((tensor == SIZE).all())


if __name__ == "__main__":
    main()
