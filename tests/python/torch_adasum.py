# SPDX-License-Identifier: BSD-3-Clause
"""Test Adasum against its formula, and SyncBatchNorm against one batch of all samples."""

import copy
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
POWER_OF_TWO = SIZE & (SIZE - 1) == 0


def vector(rank, count=50, dtype=torch.float64):
    return torch.randn(count, generator=torch.Generator().manual_seed(rank), dtype=torch.float64).to(dtype)


def combined(vectors):
    """The tree of combinations, each as in the paper."""
    if len(vectors) == 1:
        return vectors[0]
    half = len(vectors) // 2
    a, b = combined(vectors[:half]), combined(vectors[half:])
    return (1 - a @ b / (2 * a @ a)) * a + (1 - a @ b / (2 * b @ b)) * b


@unittest.skipUnless(POWER_OF_TWO, "Adasum needs a number of ranks that is a power of two")
class Adasum(unittest.TestCase):
    def test_formula(self):
        wanted = combined([vector(rank) for rank in range(SIZE)])
        torch.testing.assert_close(hvd.allreduce(vector(RANK), op=hvd.Adasum), wanted)
        mine = vector(RANK)
        self.assertIs(hvd.allreduce_(mine, op=hvd.Adasum), mine)
        torch.testing.assert_close(mine, wanted)
        work = hvd.allreduce_async(vector(RANK).view(5, 10).t(), op=hvd.Adasum, postscale_factor=2.0)
        self.assertTrue(hvd.poll(work))
        torch.testing.assert_close(hvd.synchronize(work), 2 * wanted.view(5, 10).t())

    def test_equal_and_orthogonal(self):
        """Equal vectors are averaged, and orthogonal ones added; zeros change nothing."""
        self.assertTrue((hvd.allreduce(torch.full((4,), 3.0), op=hvd.Adasum) == 3).all())
        self.assertTrue(torch.equal(hvd.allreduce(torch.eye(SIZE)[RANK], op=hvd.Adasum), torch.ones(SIZE)))
        only = torch.arange(4.0) * (RANK == SIZE - 1)
        self.assertTrue(torch.equal(hvd.allreduce(only, op=hvd.Adasum), torch.arange(4.0)))

    def test_types_and_bits(self):
        """All ranks get the same bits."""
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.bfloat16, 0.05), (torch.float16, 0.01)):
            out = hvd.allreduce(vector(RANK, dtype=dtype), op=hvd.Adasum)
            wanted = combined([vector(rank, dtype=dtype).double() for rank in range(SIZE)])
            torch.testing.assert_close(out.double(), wanted, rtol=tolerance, atol=tolerance)
            for other in hvd.allgather_object(out.double().tolist()):
                self.assertEqual(other, out.double().tolist())

    def test_grouped(self):
        """Each tensor has its own factors."""
        mine = [vector(RANK), 100 * vector(RANK + 70, 20), vector(RANK, 6, torch.float32)]
        made = hvd.grouped_allreduce(mine, op=hvd.Adasum)
        every = zip(
            *[[vector(r), 100 * vector(r + 70, 20), vector(r, 6, torch.float32)] for r in range(SIZE)]
        )
        for out, vectors in zip(made, every):
            torch.testing.assert_close(out, combined(list(vectors)))

    def test_optimizer(self):
        """The changes of parameters that each rank would make alone are combined."""
        for kind, how in ((torch.optim.SGD, {"lr": 0.1, "momentum": 0.5}), (torch.optim.Adam, {"lr": 0.1})):
            torch.manual_seed(3)
            ours = torch.nn.Linear(5, 2)
            base = kind(ours.parameters(), **how)
            schedule = torch.optim.lr_scheduler.StepLR(base, 1, 1.0)
            theirs = [copy.deepcopy(ours) for _ in range(SIZE)]
            alone = [kind(model.parameters(), **how) for model in theirs]
            optimizer = hvd.DistributedOptimizer(base, op=hvd.Adasum)
            for step in range(3):
                optimizer.zero_grad()
                ours(torch.full((1, 5), step + RANK + 1.0)).square().sum().backward()
                optimizer.synchronize()
                optimizer.step()
                schedule.step()
                starts = [parameter.detach().clone() for parameter in theirs[0].parameters()]
                for rank, (model, each) in enumerate(zip(theirs, alone)):
                    each.zero_grad()
                    model(torch.full((1, 5), step + rank + 1.0)).square().sum().backward()
                    each.step()
                for start, *every in zip(starts, *(model.parameters() for model in theirs)):
                    changes = [(parameter.detach() - start).view(-1) for parameter in every]
                    for parameter in every:
                        parameter.data.copy_(start + combined(changes).view(start.shape))
            for mine, wanted in zip(ours.parameters(), theirs[0].parameters()):
                torch.testing.assert_close(mine, wanted)
            self.assertGreater(optimizer.communication_seconds, 0)

    def test_refused(self):
        last = RANK == SIZE - 1
        with self.assertRaisesRegex(ValueError, f"not int64|rank {SIZE - 1} has"):
            hvd.allreduce(torch.ones(3, dtype=torch.int64 if last else torch.float32), op=hvd.Adasum)
        if SIZE > 1:
            with self.assertRaisesRegex(
                ValueError, "rank 0 calls allreduce.Adasum, .*, and rank . calls allreduce.Adasum"
            ):
                hvd.allreduce(torch.ones(4 if last else 3), op=hvd.Adasum)
        with self.assertRaisesRegex(TypeError, "make it dense"):
            hvd.allreduce(torch.ones(3).to_sparse(), op=hvd.Adasum)
        with self.assertRaisesRegex(RuntimeError, "op Adasum is not defined"):
            hvd.allreduce(torch.ones(3, requires_grad=True), op=hvd.Adasum).sum().backward()
        base = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1.0)
        optimizer = hvd.DistributedOptimizer(base, op=hvd.Adasum)
        with self.assertRaisesRegex(RuntimeError, "is not for Adasum"):
            with optimizer.skip_synchronize():
                pass
        with self.assertRaisesRegex(ValueError, "reduced twice"):
            hvd.DistributedOptimizer(optimizer)


@unittest.skipIf(POWER_OF_TWO, "the number of ranks is a power of two")
class OtherNumbers(unittest.TestCase):
    def test_refused(self):
        with self.assertRaisesRegex(NotImplementedError, f"a power of two, and there are {SIZE}"):
            hvd.allreduce(torch.ones(3), op=hvd.Adasum)


class BatchNorm(unittest.TestCase):
    def compare(self, shapes, **how):
        """Train on one batch a rank, and alone on all of them."""
        channels = shapes[0][1]
        ours = hvd.SyncBatchNorm(channels, **how).double()
        theirs = torch.nn.BatchNorm1d(channels, **how).double()
        generator = torch.Generator().manual_seed(5)
        for step in range(2):
            batches = [torch.randn(shape, generator=generator).double() + 100 for shape in shapes]
            weights = [torch.randn(shape, generator=generator).double() for shape in shapes]
            for rank, batch in enumerate(batches):
                batch.requires_grad_()
                batches[rank] = batch
            mine = batches[RANK].detach().clone().requires_grad_()
            out = ours(mine)
            (out * weights[RANK]).sum().backward()
            flat = [each.transpose(0, 1).reshape(channels, -1).t() for each in batches]
            whole = theirs(torch.cat(flat))
            (
                whole * torch.cat([w.transpose(0, 1).reshape(channels, -1).t() for w in weights])
            ).sum().backward()
            part = whole.split([len(each) for each in flat])[RANK]
            torch.testing.assert_close(out.transpose(0, 1).reshape(channels, -1).t(), part)
            torch.testing.assert_close(mine.grad, batches[RANK].grad)
        for name in ("weight", "bias"):
            if getattr(ours, name) is not None:
                total = hvd.allreduce(getattr(ours, name).grad, op=hvd.Sum)
                torch.testing.assert_close(total, getattr(theirs, name).grad)
        for mine, wanted in zip(ours.buffers(), theirs.buffers()):
            torch.testing.assert_close(mine, wanted)
        return ours, theirs

    def test_against_one_batch(self):
        ours, theirs = self.compare([(3 + rank, 4) for rank in range(SIZE)])
        sample = torch.randn(5, 4).double() + 100
        torch.testing.assert_close(ours.eval()(sample), theirs.eval()(sample))
        self.compare([(2, 3, 4, 5 + rank) for rank in range(SIZE)], momentum=None)
        self.compare([(4, 3)] * SIZE, affine=False, track_running_stats=False)

    def test_empty_batch(self):
        self.compare([(6 if rank == 0 else 0 if rank == SIZE - 1 else 2, 3) for rank in range(SIZE)])

    def test_half_precision(self):
        norm = hvd.SyncBatchNorm(3)
        batch = torch.randn(8, 3).bfloat16().requires_grad_()
        out = norm(batch)
        out.float().square().sum().backward()
        self.assertEqual((batch.grad.dtype, norm.weight.grad.dtype), (torch.bfloat16, torch.float32))

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "needs 2 or more"):
            hvd.SyncBatchNorm(3)(torch.ones(3))

    @unittest.skipIf(SIZE == 1, "one rank has no other")
    def test_refused_on_all(self):
        """An error in the batch of the last rank."""
        text = "" if RANK == SIZE - 1 else f"^rank {SIZE - 1} has an error in its arguments: "
        with self.assertRaisesRegex(ValueError, f"{text}the input has 1 dim"):
            hvd.SyncBatchNorm(3)(torch.ones(3) if RANK == SIZE - 1 else torch.ones(4, 3))


if __name__ == "__main__":
    main()
