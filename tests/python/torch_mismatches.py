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
                low, high = f" of {count} elements", f" of {2 * count + 700} elements"
                self.refused(rf"rank 0 calls allreduce.*{low}\), and rank . calls allreduce.*{high}\)", mine)

    def test_types(self):
        for pair in ((torch.float64, torch.float32), (torch.int32, torch.float32)):
            for count in COUNTS:
                mine = torch.ones(count, dtype=pair[ODD])
                low, high = (str(each)[6:] for each in pair)
                self.refused(f"rank 0 calls allreduce.Sum, {low} .*, and rank . calls .*Sum, {high} ", mine)

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
                self.refused("rank 0 calls allreduce.Sum, .* and rank . calls allreduce.Sum, ", mine)

    def test_ops(self):
        for dtype in (torch.float32, torch.float16):
            for count in COUNTS:
                mine = torch.ones(count, dtype=dtype)
                text = "rank 0 calls allreduce.Sum, .*, and rank . calls allreduce.Max, "
                self.refused(text, mine, hvd.Max if ODD else hvd.Sum)

    def test_layouts(self):
        for dtypes in 2 * [torch.float32], 2 * [torch.bfloat16], (torch.float32, torch.float16):
            for count in COUNTS[:-1]:
                mine = torch.ones(count, dtype=dtypes[ODD])
                text = "rank 0 calls allreduce.Sum, .*, and rank . calls allreduce.Sum, sparse .*"
                self.refused(text, mine.to_sparse() if ODD else mine)


GATHER_SINGLE = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)


def all_gather(tensor, later=False):
    work = dist.all_gather([torch.empty_like(tensor) for _ in range(SIZE)], tensor, async_op=later)
    return work.wait() if later else None


def scatter(root):
    dist.scatter(torch.empty(3), [torch.ones(3)] * SIZE if RANK == root else None, root)


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
                low, high = (f"calls .* of {number} elements" for number in (count, other))
                text = f"rank 0 {low}.*, and rank . {high}"
                with self.subTest(name, count=count):
                    self.refused(text, call, torch.ones(other if ODD else count))

    def test_types(self):
        for name, call in UNREDUCED.items():
            for pair in ((torch.float64, torch.float32), (torch.float16, torch.bfloat16)):
                high, low = (f"calls .*{str(each)[6:]} of" for each in pair)
                for count in FEW:
                    text = f"rank 0 {high}.*, and rank . {low}"
                    with self.subTest(name, count=count, pair=pair):
                        self.refused(text, call, torch.ones(count, dtype=pair[ODD]))

    def test_others(self):
        """Roots and layouts."""
        dense, sparse = torch.ones(600), torch.ones(600).to_sparse()
        for text, here, there in (
            ("root", lambda: hvd.broadcast(dense, 0), lambda: hvd.broadcast(dense, 1)),
            ("sparse", lambda: dist.broadcast(dense, 0), lambda: dist.broadcast(sparse, 0)),
            ("sparse", lambda: all_gather(dense), lambda: all_gather(sparse)),
            ("root", lambda: scatter(0), lambda: scatter(1)),
        ):
            with self.subTest(text):
                text = f"calls differ between ranks: rank 0 calls .*, and rank {SIZE - 1} calls .*{text}"
                self.refused(text, lambda _: (there if ODD else here)(), None)

    def test_no_rank(self):
        """A root that is not a rank, on all ranks and on one."""
        for root in (-1, SIZE):
            text = f"the root is {root}, and ranks are 0 to {SIZE - 1}"
            self.refused(text, lambda tensor, at=root: hvd.broadcast(tensor, at), torch.ones(4))
            self.refused(text, lambda tensor, at=root: hvd.broadcast(tensor, at if ODD else 0), torch.ones(4))

    def test_wrong_list(self):
        """A list that is wrong on one rank."""
        outputs = [torch.empty(4) for _ in range(SIZE - ODD)]
        text = "output list has"
        self.refused(text, lambda tensor: dist.all_gather(outputs, tensor), torch.ones(4))

    def test_rows_of_allgather(self):
        """First dimensions may differ, the others may not."""
        for count in FEW:
            rows = RANK * count
            self.assertEqual(len(hvd.allgather(torch.ones(rows, 2))), count * SIZE * (SIZE - 1) // 2)
            with self.assertRaisesRegex(
                ValueError, r"rank 0 calls allgather\(rows of float32 of shape \(2,\)\), and rank . calls"
            ):
                hvd.allgather(torch.ones(count, 3 if ODD else 2))
            with self.assertRaisesRegex(ValueError, r"allgather\(numbers of type float..\), and rank"):
                hvd.allgather(torch.ones(count, dtype=torch.float64 if ODD else torch.float32))

    def test_averages(self):
        """For the library an average is a sum with a label."""
        for dtype in (torch.float32, torch.bfloat16):
            for count in FEW:
                op = (hvd.Sum, hvd.Average)[ODD]
                text = "rank 0 calls .*allreduce.Sum.*, and rank . calls .*allreduce.Average"
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
            op, text = hvd.Average, "rank 0 calls allreduce.Average, .*, and rank . calls allreduce.Adasum, "
            if ODD:
                op, mine = hvd.Adasum, torch.ones(3)
            with self.assertRaisesRegex(mpix_sparse.Error, text):
                hvd.allreduce(mine, op=op)

    def test_optimizers(self):
        weight = torch.nn.Parameter(torch.ones(3))
        op = (hvd.Sum, hvd.Average)[ODD]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], 0.1), [("weight", weight)], op=op)
        with self.assertRaisesRegex(
            ValueError, "rank 0 calls a step .* op Sum, and rank . calls a step .* op Average"
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


def reduce_scatter(tensor):
    getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)(tensor[: len(tensor) // SIZE], tensor)


def parts(tensor):
    return list(tensor.split(len(tensor) // SIZE))


# Calls of different functions on a tensor whose length is a multiple of the number of ranks: their names in
# errors, and the calls.
FUNCTIONS = (
    ("allreduce", hvd.allreduce),
    ("allreduce", lambda tensor: hvd.synchronize(hvd.allreduce_async_(tensor, op=hvd.Max))),
    ("allreduce", lambda tensor: hvd.allreduce(tensor.bfloat16())),
    ("allreduce", lambda tensor: hvd.allreduce(tensor.to_sparse())),
    ("grouped_allreduce", lambda tensor: hvd.grouped_allreduce([tensor, tensor])),
    ("broadcast", lambda tensor: hvd.broadcast(tensor, 0)),
    ("broadcast", lambda tensor: hvd.synchronize(hvd.broadcast_async_(tensor.to_sparse(), 0))),
    ("broadcast", lambda tensor: hvd.broadcast_object(3)),
    ("allgather", hvd.allgather),
    ("allgather_object", lambda tensor: hvd.allgather_object(3)),
    ("barrier", lambda tensor: hvd.barrier()),
    ("alltoall", hvd.alltoall),
    ("reducescatter", hvd.reducescatter),
    ("add_process_set", lambda tensor: hvd.add_process_set([0])),
    ("broadcast_parameters", lambda tensor: hvd.broadcast_parameters({"a": tensor})),
)
DISTRIBUTED = (
    ("allreduce", dist.all_reduce),
    ("allreduce", lambda tensor: dist.all_reduce(tensor.half(), async_op=True).wait()),
    ("reduce", lambda tensor: dist.reduce(tensor, 0, dist.ReduceOp.MIN)),
    ("broadcast", lambda tensor: dist.broadcast(tensor, 0)),
    ("all_gather", all_gather),
    ("gather", lambda tensor: dist.gather(tensor, None if RANK else [tensor.clone()] * SIZE, 0)),
    ("scatter", lambda tensor: scatter(0)),
    ("barrier", lambda tensor: dist.barrier()),
    ("reduce_scatter", reduce_scatter),
    ("all_to_all", lambda tensor: dist.all_to_all(parts(torch.empty_like(tensor)), parts(tensor))),
    ("all_to_all_single", lambda tensor: dist.all_to_all_single(torch.empty_like(tensor), tensor)),
)


@unittest.skipIf(SIZE == 1, "one rank has no other")
class Functions(unittest.TestCase):
    """Ranks that call different functions, or of which one cannot start its call."""

    def refused(self, text, call, error=ValueError, after=hvd.allreduce):
        start = time.monotonic()
        with self.assertRaisesRegex(error, text):
            call()
        self.assertLess(time.monotonic() - start, SECONDS)
        self.assertTrue((after(torch.ones(3)) == 1).all())

    def test_pairs(self):
        """All pairs, of Horovod's functions and of torch.distributed's; the sizes take turns."""
        number = 0
        for functions in FUNCTIONS, DISTRIBUTED:
            for name, here in functions:
                for other, there in functions:
                    if name == other:
                        continue
                    count, number = FEW[number % len(FEW)], number + 1
                    tensor = torch.ones(count * SIZE)
                    text = f"ranks: rank 0 calls {name}.*, and rank {SIZE - 1} calls {other}"
                    with self.subTest(here=name, there=other, count=count):
                        self.refused(text, lambda: (there if ODD else here)(tensor))
        hvd.barrier()

    def test_problems(self):
        """An error on the last rank, whose kind is the same there; the others call each function."""
        ints, sparse = torch.ones(4, dtype=torch.int64), torch.eye(2).to_sparse()
        bad = (
            ("no Average of int64", ValueError, lambda: hvd.allreduce(ints)),
            ("no Average of int64", ValueError, lambda: hvd.allreduce_async_(ints)),
            ("'max' is not for bool", TypeError, lambda: hvd.allreduce(torch.ones(4) > 0, op=hvd.Max)),
            (
                "'max' is not for bool",
                ValueError,
                lambda: hvd.allreduce((torch.eye(2) > 0).to_sparse(), op=hvd.Max),
            ),
            ("a tensor is needed, not list", TypeError, lambda: hvd.allreduce([1.0])),
            ("a tensor is needed, not float", TypeError, lambda: hvd.broadcast(1.0, 0)),
            ("root is '0'; it must be the number", ValueError, lambda: hvd.broadcast(torch.ones(3), "0")),
            ("params is None; it must be", TypeError, lambda: hvd.broadcast_parameters(None)),
            ("layout torch.sparse_coo", TypeError, lambda: hvd.grouped_allreduce([sparse])),
            ("no Average of int64", ValueError, lambda: hvd.grouped_allreduce([torch.ones(3), ints])),
            ("compression is 3", TypeError, lambda: hvd.allreduce(torch.ones(3), compression=3)),
            ("op is 'sum'", ValueError, lambda: hvd.allreduce(torch.ones(3), op="sum")),
            ("unexpected keyword argument 'size'", TypeError, lambda: hvd.allreduce(torch.ones(3), size=3)),
            ("missing 1 required positional argument", TypeError, lambda: hvd.broadcast(torch.ones(3))),
            ("a tensor is needed, not str", TypeError, lambda: hvd.allgather("text")),
            ("cannot be pickled", ValueError, lambda: hvd.allgather_object(lambda: 3)),
            ("no dimension", ValueError, lambda: hvd.alltoall(torch.tensor(3.0))),
            ("a tensor is needed, not dict", TypeError, lambda: hvd.reducescatter({})),
            ("complex64", TypeError, lambda: hvd.allreduce(torch.ones(3, dtype=torch.complex64), op=hvd.Min)),
        )
        number = 0
        for text, error, call in bad:
            for name, other in FUNCTIONS:
                tensor, number = torch.ones(FEW[number % len(FEW)] * SIZE), number + 1
                with self.subTest(text, other=name):
                    if ODD:
                        self.refused(text, call, error)
                    else:
                        known = f"^rank {SIZE - 1} has an error in its arguments: .*{text}"
                        self.refused(known, lambda: other(tensor))
            self.refused(text, call, error)  # on all ranks

    def test_no_optimizer(self):
        optimizer = None if ODD else torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], 0.1)
        known = "" if ODD else f"^rank {SIZE - 1} has an error in its arguments: "
        known, error = known + "an optimizer is needed, not NoneType", TypeError if ODD else ValueError
        for root in (SIZE - 1, 0):
            self.refused(known, lambda root=root: hvd.broadcast_optimizer_state(optimizer, root), error)

    def test_problems_distributed(self):
        """A reduction that the backend does not have, and lists of wrong lengths."""
        average = dist.ReduceOp.AVG
        bad = (
            ("no Average of int64", lambda: dist.all_reduce(torch.ones(4, dtype=torch.int64), average)),
            ("the root is -1, and", lambda: dist.reduce(torch.ones(3), -1)),
            ("output list has", lambda: dist.all_gather([torch.empty(3)] * (SIZE + 1), torch.ones(3))),
            ("input list has", lambda: dist.all_to_all([torch.empty(3)] * SIZE, [torch.ones(3)])),
        )
        after = lambda tensor: dist.all_reduce(tensor, average) or tensor  # noqa: E731
        for text, call in bad:
            for _, other in DISTRIBUTED:
                tensor = torch.ones(4 * SIZE)
                known = text if ODD else f"^rank {SIZE - 1} has an error in its arguments: .*{text}"
                self.refused(known, call if ODD else lambda: other(tensor), after=after)

    def test_groups(self):
        """Lists whose shapes or types change places, or that differ in length."""
        lists = (
            ([(2, 3), (4,)], [(4,), (2, 3)]),
            ([(2, 3)], [(3, 2)]),
            ([(4,), (6,)], [(10,)]),
            ([(1000000,), (1,)], [(1,), (1000000,)]),
        )
        for pair in lists:
            for dtype in torch.float32, torch.bfloat16:
                mine = [torch.ones(shape, dtype=dtype) for shape in pair[ODD]]
                text = "rank 0 calls grouped_allreduce.Sum .*, and rank . calls grouped_allreduce.Sum"
                self.refused(text, lambda: hvd.grouped_allreduce(mine, op=hvd.Sum))
                self.refused(text, lambda: hvd.synchronize(hvd.grouped_allreduce_async_(mine, op=hvd.Sum)))
        small, large = torch.ones(2), torch.ones(3, dtype=torch.float64)
        for lists in (([small, large], [small]), ([small, large], [large, small]), ([small.half()], [large])):
            self.refused("rank 0 calls grouped_allreduce", lambda: hvd.grouped_allreduce(lists[ODD]))
        self.refused("rank 0 calls allgather", lambda: hvd.grouped_allgather([] if ODD else [small]))

    def test_shapes_of_sparse(self):
        """Shapes with the same number of elements."""
        shape = (3, 2) if ODD else (2, 3)
        text = r"sparse float32 of shape \(2, 3\).*, and rank . calls .* of shape \(3, 2\)"
        self.refused(text, lambda: hvd.allreduce(torch.ones(shape).to_sparse()))

    def test_in_place(self):
        """A call in place on one rank only is no error."""
        for dtype in torch.float32, torch.float64, torch.bfloat16, torch.int32:
            for count in COUNTS:
                tensor = torch.ones(count, dtype=dtype)
                for there, here in (
                    (hvd.allreduce, hvd.allreduce_),
                    (
                        lambda tensor, op: hvd.synchronize(hvd.allreduce_async(tensor, op=op)),
                        lambda tensor, op: hvd.synchronize(hvd.allreduce_async_(tensor, op=op)),
                    ),
                ):
                    kept = tensor.clone()
                    reduced = (here if ODD else there)(kept, op=hvd.Sum)
                    self.assertTrue((reduced == SIZE).all())
                    self.assertTrue((kept == (SIZE if ODD else 1)).all())
        strided = torch.ones(6, 5).t()
        tensor = strided if ODD else strided.contiguous()
        self.assertTrue((hvd.allreduce_(tensor, op=hvd.Sum) == SIZE).all())

    def test_in_flight(self):
        """Calls before and after one that fails are in flight; each rank waits for them in its own order."""
        for step in range(10):
            tensors = [torch.full((4 + 700 * i,), 1.0) for i in range(6)]
            wrong = {1, 4}
            works = []
            for i, tensor in enumerate(tensors):
                if i in wrong and ODD:
                    tensor = torch.ones(3)
                broadcasts = i == 4 and not ODD
                works.append(
                    hvd.broadcast_async_(tensor, 0)
                    if broadcasts
                    else hvd.allreduce_async_(tensor, op=hvd.Sum)
                )
            order = torch.randperm(6, generator=torch.Generator().manual_seed(100 * step + RANK)).tolist()
            for i in order:
                if i in wrong:
                    calls = ("allreduce", "broadcast")[i == 4]
                    text = f"rank 0 calls {calls}.* {4 + 700 * i} elements.*, and rank . calls allreduce.* 3 "
                    with self.assertRaisesRegex(ValueError, text):
                        hvd.synchronize(works[i])
                else:
                    self.assertTrue((hvd.synchronize(works[i]) == SIZE).all())

    def test_report(self):
        """Comparisons are left out of reports."""
        for dtype in torch.float32, torch.bfloat16, torch.float16:
            hvd.allreduce(torch.ones(5), op=hvd.Sum)
            hvd.allreduce(torch.ones(7, dtype=dtype), op=hvd.Sum)
            hvd.barrier()
            hvd.broadcast(torch.ones(3), 0)
            self.assertEqual(hvd.report().count, 7)
            self.assertEqual(hvd.report(dtype).count, 7)
        weight = torch.nn.Parameter(torch.ones(9))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], 0.1), [("weight", weight)])
        weight.sum().backward()
        optimizer.step()
        self.assertEqual(hvd.report().count, 9)
        hvd.allreduce(torch.ones(5), op=hvd.Sum)
        hvd.allreduce(torch.ones(7).half(), op=hvd.Sum)
        self.assertEqual(hvd.report(torch.float32).count, 5)


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
