# SPDX-License-Identifier: BSD-3-Clause
"""Test arrays of PyTorch, CuPy and JAX on a device of CUDA: calls give the results of host memory, bit for
bit. Numbers are small integers."""

import os
import sys
import unittest

import numpy

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "python"))
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several ranks share the device

from common import draw, main, need_here, whole  # noqa: E402

import mpix_sparse  # noqa: E402

COUNT, ROWS, WIDTH = 100000, 5000, 16
RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()


def need_torch():
    torch = need_here("torch", "none; pip install torch")
    if not torch.cuda.is_available():
        raise unittest.SkipTest("PyTorch sees no device of CUDA")
    return torch


def sparse_rows(torch, rank):
    """An uncoalesced gradient of an embedding, on the host."""
    random = draw(7, rank)
    indices = torch.from_numpy(random.integers(0, ROWS, (1, 200)))
    values = torch.from_numpy(random.integers(1, 9, (200, WIDTH)).astype("float32"))
    return torch.sparse_coo_tensor(indices, values, (ROWS, WIDTH))


class Torch(unittest.TestCase):
    def setUp(self):
        self.torch = need_torch()
        self.device = self.torch.device("cuda")

    def expect(self, device, host):
        self.assertTrue(device.is_cuda)
        self.assertTrue(self.torch.equal(device.cpu(), host))

    def test_dense(self):
        import mpix_sparse.torch as hvd

        for name in "float32", "float64", "int64", "float16", "bfloat16":
            mine = self.torch.from_numpy(whole(COUNT, 0.01, "float64", RANK)).to(getattr(self.torch, name))
            wanted = hvd.allreduce(mine, op=hvd.Sum)
            there = mine.to(self.device)
            self.expect(hvd.allreduce(there, op=hvd.Sum), wanted)
            hvd.allreduce_(there, op=hvd.Sum)
            self.expect(there, wanted)

    def test_queued_work(self):
        """A call waits for what PyTorch has queued on its current stream."""
        import mpix_sparse.torch as hvd

        mine = self.torch.from_numpy(whole(COUNT, 0.01, "float32", RANK))
        stream = self.torch.cuda.Stream()
        for _ in range(10):
            with self.torch.cuda.stream(stream):
                there = mine.to(self.device, non_blocking=True)
                for _ in range(20):
                    there = there * 2
                    there = there / 2
                out = hvd.allreduce(there, op=hvd.Sum)
                doubled = out * 2
            stream.synchronize()
            self.expect(doubled, 2 * hvd.allreduce(mine, op=hvd.Sum))

    def test_rows(self):
        import mpix_sparse.torch as hvd

        mine = sparse_rows(self.torch, RANK)
        wanted = hvd.allreduce(mine, op=hvd.Sum).coalesce()
        found = hvd.allreduce(mine.to(self.device), op=hvd.Sum).coalesce()
        self.expect(found.indices(), wanted.indices())
        self.expect(found.values(), wanted.values())
        handle = hvd.allreduce_async(mine.to(self.device), op=hvd.Sum)
        self.expect(hvd.synchronize(handle).to_dense(), wanted.to_dense())

    def test_other_calls(self):
        import mpix_sparse.torch as hvd

        mine = self.torch.arange(10 * (RANK + 1), dtype=self.torch.float32)
        self.expect(hvd.allgather(mine.to(self.device)), hvd.allgather(mine))
        same = self.torch.full((1000,), float(RANK))
        self.expect(hvd.broadcast(same.to(self.device), SIZE - 1), self.torch.full((1000,), float(SIZE - 1)))
        pair = [self.torch.full((50,), float(RANK)), self.torch.ones(2000)]
        for found, wanted in zip(
            hvd.grouped_allreduce([one.to(self.device) for one in pair], op=hvd.Sum),
            hvd.grouped_allreduce(pair, op=hvd.Sum),
        ):
            self.expect(found, wanted)

    def train(self, device, sparse):
        """Three steps of a classifier of bags of words. Returns its parameters on the host."""
        import mpix_sparse.torch as hvd

        torch = self.torch
        torch.manual_seed(1)
        table = torch.nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=sparse).to(device)
        with torch.no_grad():
            table.weight.copy_(torch.randint(-4, 4, table.weight.shape))
        optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=table.named_parameters(), op=hvd.Sum)
        hvd.broadcast_parameters(table.state_dict(), root_rank=0)
        for step in range(3):
            words = torch.from_numpy(draw(20 + step, RANK).integers(0, ROWS, (32, 10))).to(device)
            optimizer.zero_grad()
            table(words).sum().backward()
            optimizer.step()
        return table.weight.detach().cpu()

    def test_optimizer(self):
        for sparse in False, True:
            self.assertTrue(self.torch.equal(self.train(self.device, sparse), self.train("cpu", sparse)))

    def test_backend(self):
        import torch.distributed as dist

        import mpix_sparse.torch  # noqa: F401

        dist.init_process_group("mpix_sparse", init_method="mpix://")
        try:
            mine = self.torch.from_numpy(whole(COUNT, 0.01, "float32", RANK))
            wanted = self.torch.from_numpy(sum(whole(COUNT, 0.01, "float32", rank) for rank in range(SIZE)))
            there = mine.to(self.device)
            dist.all_reduce(there)
            self.expect(there, wanted)
            model = self.torch.nn.Linear(8, 4, bias=False).to(self.device)
            with self.torch.no_grad():
                model.weight.fill_(1)
            model = self.torch.nn.parallel.DistributedDataParallel(model)
            model(self.torch.full((1, 8), RANK + 1.0, device=self.device)).sum().backward()
            mean = (SIZE + 1) / 2
            self.expect(model.module.weight.grad, self.torch.full((4, 8), mean))
        finally:
            dist.destroy_process_group()


class Cupy(unittest.TestCase):
    def setUp(self):
        self.cupy = need_here("cupy", "none; pip install cupy-cuda13x")
        if not self.cupy.cuda.is_available():
            self.skipTest("CuPy sees no device of CUDA")

    def test_calls(self):
        for kind in "float32", "float64", "int32":
            mine = whole(COUNT, 0.01, kind, RANK)
            found = mpix_sparse.allreduce(self.cupy.asarray(mine))
            self.assertIsInstance(found, self.cupy.ndarray)
            numpy.testing.assert_array_equal(self.cupy.asnumpy(found), mpix_sparse.allreduce(mine))
            index = numpy.flatnonzero(mine)
            wanted = mpix_sparse.allreduce_coo(index, mine[index], COUNT)
            there = self.cupy.asarray(index), self.cupy.asarray(mine[index])
            result = mpix_sparse.allreduce_coo(*there, COUNT)
            for found, expected in (result.indices, wanted.indices), (result.values, wanted.values):
                on_host = self.cupy.asnumpy(self.cupy.asarray(found))
                numpy.testing.assert_array_equal(on_host, expected)


class Jax(unittest.TestCase):
    def setUp(self):
        self.jax = need_here("jax", "none; pip install jax[cuda13]")
        try:
            self.gpu = self.jax.devices("gpu")[0]
        except RuntimeError as reason:
            self.skipTest(f"JAX sees no device: {reason}")

    def test_calls(self):
        import mpix_sparse.jax as mpx

        mine = whole(COUNT, 0.01, "float32", RANK)
        wanted = mpix_sparse.allreduce(mine)
        there = self.jax.device_put(mine, self.gpu)
        numpy.testing.assert_array_equal(numpy.asarray(mpx.allreduce(there)), wanted)
        inside = self.jax.jit(lambda x: mpx.allreduce(x + x) / 2)
        numpy.testing.assert_array_equal(numpy.asarray(inside(there)), wanted)


if __name__ == "__main__":
    main()
