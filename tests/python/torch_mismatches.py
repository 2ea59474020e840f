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
