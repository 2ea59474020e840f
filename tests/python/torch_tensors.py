# SPDX-License-Identifier: BSD-3-Clause
"""Test mpix_sparse.torch: dense and sparse tensors, in all interfaces, against plain sums and Gloo's
allreduce."""

import inspect
import os
import signal
import socket
import threading
import time
import unittest
import unittest.mock

import numpy
from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse.torch import _allreduce, _blocking, _ops  # noqa: E402
from mpix_sparse.torch._allreduce import start_allreduce  # noqa: E402
from mpix_sparse.torch._world import world  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def dense(rank, shape=(50, 40), dtype=torch.float32, seed=1):
    """Integral numbers, mostly zeros."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    values = torch.randint(1, 9, shape, generator=generator)
    return (values * (torch.rand(shape, generator=generator) < 0.1)).to(dtype)


def rows(rank, count=500, width=8, nnz=30):
    """An uncoalesced sparse gradient; empty on rank 1."""
    generator = torch.Generator().manual_seed(rank)
    nnz = 0 if rank == 1 else nnz
    indices = torch.randint(0, count, (1, nnz), generator=generator)
    values = torch.randint(1, 9, (nnz, width), generator=generator).float()
    return torch.sparse_coo_tensor(indices, values, (count, width))


class Tensors(unittest.TestCase):
    def test_world(self):
        self.assertEqual((RANK, SIZE), (mpix_sparse.rank(), mpix_sparse.size()))
        self.assertEqual((hvd.local_rank(), hvd.local_size()), (RANK, SIZE))
        self.assertTrue(hvd.is_initialized())

    def test_types_and_ops(self):
        for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.float16, torch.bfloat16):
            mine = dense(RANK, dtype=dtype)
            all_of_them = torch.stack([dense(rank, dtype=torch.float64) for rank in range(SIZE)])
            for op, total in (
                (hvd.Sum, all_of_them.sum(0)),
                (hvd.Max, all_of_them.amax(0)),
                (hvd.Min, all_of_them.amin(0)),
            ):
                out = hvd.allreduce(mine, op=op)
                self.assertEqual(out.dtype, dtype)
                self.assertTrue(torch.equal(out.double(), total))
        with self.assertRaisesRegex(ValueError, "no Average of int64"):
            hvd.allreduce(torch.ones(3, dtype=torch.int64))

    def test_average_and_factors(self):
        total = sum(dense(rank) for rank in range(SIZE))
        self.assertTrue(torch.equal(hvd.allreduce(dense(RANK)), total / SIZE))
        self.assertTrue(torch.equal(hvd.allreduce(dense(RANK), average=False), total))
        scaled = hvd.allreduce(dense(RANK), op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.25)
        self.assertTrue(torch.equal(scaled, total / 2))
        with self.assertRaisesRegex(ValueError, "both given"):
            hvd.allreduce(dense(RANK), average=True, op=hvd.Sum)

    def test_in_place_and_gaps(self):
        total = sum(dense(rank) for rank in range(SIZE))
        mine = dense(RANK)
        self.assertIs(hvd.allreduce_(mine, op=hvd.Sum), mine)
        self.assertTrue(torch.equal(mine, total))
        turned = dense(RANK).t()
        before = turned.clone()
        self.assertTrue(torch.equal(hvd.allreduce(turned, op=hvd.Sum), total.t()))
        self.assertTrue(torch.equal(turned, before))
        hvd.allreduce_(turned, op=hvd.Sum)
        self.assertTrue(torch.equal(turned, total.t()))

    def test_conjugated_and_negated(self):
        """Views whose memory has numbers other than their own."""
        wanted = torch.tensor([1 - 2j, 3 + 4j])
        for view, numbers in (
            (torch.tensor([1 + 2j, 3 - 4j]).conj(), wanted),
            (torch._neg_view(torch.tensor([1.0, -2.0])), torch.tensor([-1.0, 2.0])),
            (torch.tensor([1 + 2j, 3 - 4j]).conj().imag, wanted.imag.clone()),
        ):
            self.assertTrue(torch.equal(hvd.allreduce(view, op=hvd.Sum), numbers * SIZE))
            self.assertTrue(torch.equal(hvd.allgather(view), torch.cat([numbers] * SIZE)))
            self.assertTrue(torch.equal(hvd.broadcast(view, 0), numbers))
            self.assertTrue(torch.equal(hvd.grouped_allreduce([view], op=hvd.Sum)[0], numbers * SIZE))
            self.assertTrue(torch.equal(hvd.allreduce_(view, op=hvd.Sum), numbers * SIZE))
            self.assertTrue(torch.equal(view, numbers * SIZE))

    def test_async_in_any_order(self):
        works = [hvd.allreduce_async(dense(RANK, seed=i), op=hvd.Sum, name=str(i)) for i in range(5)]
        for i in range(5) if RANK % 2 else reversed(range(5)):
            total = sum(dense(rank, seed=i) for rank in range(SIZE))
            self.assertTrue(torch.equal(hvd.synchronize(works[i]), total))
            self.assertTrue(hvd.poll(works[i]))

    def test_sparse_with_factors_and_compression(self):
        total = sum(rows(rank).to_dense() for rank in range(SIZE))
        how = {"op": hvd.Sum, "prescale_factor": 2.0, "postscale_factor": 0.75}
        for out in (
            hvd.allreduce(rows(RANK), **how),
            hvd.allreduce(rows(RANK), compression=hvd.Compression.bf16, **how),
            hvd.allreduce_async(rows(RANK), **how).wait(),
            hvd.allreduce_(rows(RANK), **how),
        ):
            self.assertEqual(out.dtype, torch.float32)
            self.assertTrue(torch.equal(out.to_dense(), total * 1.5))
        third = torch.tensor([1 / 3]).to_sparse()
        out = hvd.allreduce(third, compression=hvd.Compression.bf16)
        self.assertEqual(float(out.to_dense()), float(torch.tensor(1 / 3).bfloat16()))

    def test_compression(self):
        for compression in (hvd.Compression.none, hvd.Compression.bf16, hvd.Compression.fp16):
            out = hvd.allreduce(dense(RANK), op=hvd.Sum, compression=compression)
            self.assertEqual(out.dtype, torch.float32)
            self.assertTrue(torch.equal(out, sum(dense(rank) for rank in range(SIZE))))

    def test_gradient_flows(self):
        tensor = dense(RANK).requires_grad_()
        (hvd.allreduce(tensor, op=hvd.Sum) * (RANK + 1)).sum().backward()
        self.assertTrue((tensor.grad == SIZE * (SIZE + 1) / 2).all())
        with self.assertRaisesRegex(RuntimeError, "op Max is not defined"):
            hvd.allreduce(tensor, op=hvd.Max).sum().backward()
        with self.assertRaisesRegex(ValueError, "op is 'sum'; it must be one of Average, Sum"):
            torch.ops.mpix_sparse.allreduce(tensor, "sum", 1.0, 1.0)

    def test_gradients_of_the_others(self):
        """As in Horovod, the gradient of gather and broadcast is the mean of the ranks' gradients."""
        mean = (SIZE + 1) / 2
        mine = torch.ones(RANK + 1, 2, requires_grad=True)
        out = hvd.allgather(mine)
        (out * torch.arange(len(out)).view(-1, 1) * (RANK + 1)).sum().backward()
        first = RANK * (RANK + 1) // 2
        places = torch.arange(first, first + RANK + 1).view(-1, 1).expand(-1, 2)
        self.assertTrue(torch.equal(mine.grad, places * mean))
        mine = torch.ones(3, requires_grad=True)
        (hvd.broadcast(mine, SIZE - 1) * (RANK + 1)).sum().backward()
        self.assertTrue((mine.grad == (mean if RANK == SIZE - 1 else 0)).all())
        ours = [torch.ones(n, requires_grad=True) for n in (3, 4)]
        first, second = hvd.grouped_allreduce(ours, op=hvd.Sum, prescale_factor=2.0)
        (first.sum() * (RANK + 1) + 2 * second.sum()).backward()
        self.assertTrue((ours[0].grad == 2 * SIZE * mean).all() and (ours[1].grad == 4 * SIZE).all())
        with self.assertRaisesRegex(RuntimeError, "op Max is not defined"):
            hvd.grouped_allreduce(ours, op=hvd.Max)[0].sum().backward()

    def test_shape_of_the_interface(self):
        """Names and order of arguments match Horovod's documentation."""
        name, factors = "average name", "op prescale_factor postscale_factor process_set"
        for function, names in (
            (hvd.allreduce, f"tensor {name} compression {factors}"),
            (hvd.allreduce_, f"tensor {name} {factors}"),
            (hvd.allreduce_async, f"tensor {name} {factors}"),
            (hvd.allreduce_async_, f"tensor {name} {factors}"),
            (hvd.grouped_allreduce, f"tensors {name} compression {factors}"),
            (hvd.grouped_allreduce_, f"tensors {name} {factors}"),
            (hvd.grouped_allreduce_async, f"tensors {name} {factors}"),
            (hvd.grouped_allreduce_async_, f"tensors {name} {factors}"),
            (hvd.sparse_allreduce_async, "tensor name op process_set"),
            (hvd.allgather, "tensor name process_set"),
            (hvd.allgather_async, "tensor name process_set"),
            (hvd.allgather_object, "obj name process_set"),
            (hvd.broadcast, "tensor root_rank name process_set"),
            (hvd.broadcast_, "tensor root_rank name process_set"),
            (hvd.broadcast_object, "obj root_rank name process_set"),
            (hvd.barrier, "process_set"),
        ):
            with self.subTest(function.__name__):
                self.assertEqual(list(inspect.signature(function).parameters), names.split())
                needed = {"root_rank": 0} if "broadcast" in function.__name__ else {}
                argument = (
                    () if function is hvd.barrier else ([],) if "s average" in names else (torch.ones(3),)
                )
                with self.assertRaisesRegex(ValueError, "must be None or a ProcessSet"):
                    function(*argument, process_set=3, **needed)
        world = hvd.global_process_set
        self.assertEqual((world.size(), world.rank(), world.included()), (SIZE, RANK, True))
        hvd.barrier(process_set=world)
        self.assertTrue((hvd.allreduce(torch.ones(3), process_set=world) == 1).all())

    def test_operator(self):
        allreduce = torch.ops.mpix_sparse.allreduce
        tensor = dense(RANK).requires_grad_()
        out = allreduce(tensor, "Sum", 2.0, 0.5)
        self.assertTrue(torch.equal(out, sum(dense(rank) for rank in range(SIZE))))
        (out * (RANK + 1)).sum().backward()
        self.assertTrue((tensor.grad == SIZE * (SIZE + 1) / 2).all())

    def test_eager(self):
        """Only tensors that need no gradient, graph or transform take the way without the operator."""
        tensor = dense(RANK)
        dual = torch.autograd.forward_ad
        self.assertTrue(_ops.is_eager(tensor))
        self.assertFalse(_ops.is_eager(torch.nn.Parameter(tensor)))
        self.assertFalse(_ops.is_eager(tensor.clone().requires_grad_()))
        with dual.dual_level():
            self.assertFalse(_ops.is_eager(dual.make_dual(tensor, tensor)))
        found = []
        torch.jit.trace(lambda x: (found.append(_ops.is_eager(x)), x + 1)[1], tensor, check_trace=False)
        if hasattr(torch, "func"):
            torch.func.vmap(lambda x: (found.append(_ops.is_eager(x)), x + 1)[1])(tensor)
            torch.func.grad(lambda x: (found.append(_ops.is_eager(x)), x.sum())[1])(tensor)
        self.assertFalse(any(found))
        with unittest.mock.patch("mpix_sparse.torch._allreduce._allreduce") as operator:
            eager = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=2.0)
        operator.assert_not_called()
        for mine in tensor.clone().requires_grad_(), torch.nn.Parameter(tensor):
            self.assertTrue(torch.equal(hvd.allreduce(mine, op=hvd.Sum, prescale_factor=2.0), eager))
        self.assertTrue(torch.equal(tensor, dense(RANK)))

    def test_compiled_call(self):
        if not hasattr(torch.library, "custom_op"):
            self.skipTest("operators can be compiled from PyTorch 2.4 on")
        compiled = torch.compile(lambda x: hvd.allreduce(x * 2, op=hvd.Sum) + 1, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(dense(RANK)), 2 * sum(dense(rank) for rank in range(SIZE)) + 1))

    def test_compiled(self):
        if not hasattr(torch.library, "custom_op"):
            self.skipTest("operators can be compiled from PyTorch 2.4 on")

        def twice(tensor):
            return torch.ops.mpix_sparse.allreduce(tensor * 2, "Sum", 1.0, 1.0) + 1

        tensor = dense(RANK).requires_grad_()
        out = torch.compile(twice, backend="aot_eager", fullgraph=True)(tensor)
        self.assertTrue(torch.equal(out, 2 * sum(dense(rank) for rank in range(SIZE)) + 1))
        out.sum().backward()
        self.assertTrue((tensor.grad == 2 * SIZE).all())

    def test_grouped(self):
        shapes = ((3,), (4, 5), (0,), (2, 2, 2))
        mine = [dense(RANK, shape, torch.float64 if len(shape) > 2 else torch.float32) for shape in shapes]
        how = {"op": hvd.Sum, "postscale_factor": 0.5, "prescale_factor": 2.0}
        outs = hvd.grouped_allreduce(mine, compression=hvd.Compression.bf16, **how)
        self.assertEqual([out.dtype for out in outs], [tensor.dtype for tensor in mine])
        for shape, out in zip(shapes, outs):
            self.assertTrue(torch.equal(out.float(), sum(dense(rank, shape) for rank in range(SIZE))))
        self.assertIs(hvd.grouped_allreduce_(mine, op=hvd.Sum)[0], mine[0])

    def test_grouped_generator(self):
        calls = (hvd.grouped_allreduce, hvd.grouped_allreduce_)
        starts = (hvd.grouped_allreduce_async, hvd.grouped_allreduce_async_)
        for call in (*calls, *(lambda *how, start=start: start(*how).wait() for start in starts)):
            outs = call((torch.full((2,), float(RANK + i)) for i in range(3)), None, None)
            self.assertEqual([out.tolist() for out in outs], [[(SIZE - 1) / 2 + i] * 2 for i in range(3)])

    def test_grouped_refusals(self):
        """The check precedes the start: no call of a part has started."""
        single = torch.arange(3.0)
        wrong = [
            (ValueError, "no Average of int64", torch.arange(3)),
            (TypeError, "torch.sparse_coo cannot be sent", torch.ones(3, dtype=torch.float64).to_sparse()),
        ]
        for call in (hvd.grouped_allreduce, hvd.grouped_allreduce_async_):
            for error, sentence, tensor in wrong:
                with unittest.mock.patch("mpix_sparse.torch._grouped.start_allreduce") as start:
                    with self.assertRaisesRegex(error, sentence):
                        call([single, tensor])
                start.assert_not_called()

    def test_sparse(self):
        total = sum(rows(rank).to_dense() for rank in range(SIZE))
        out = hvd.synchronize(hvd.sparse_allreduce_async(rows(RANK), name="rows", op=hvd.Sum))
        self.assertTrue(out.is_sparse and out.is_coalesced())
        self.assertTrue(torch.equal(out.to_dense(), total))
        self.assertTrue(torch.equal(out.coalesce().indices(), total.any(1).nonzero().t()))
        self.assertTrue(torch.equal(hvd.allreduce(rows(RANK)).to_dense(), total / SIZE))

    def test_dense_blocking(self):
        """As test_sparse_blocking(), also for types and sizes that the C library passes to MPI."""
        types = torch.float32, torch.complex64, torch.uint8
        calls = [(hvd.Sum, size, dtype) for size in (3, 1000, 100000) for dtype in types]
        calls += [(hvd.Average, 1000, torch.float64), (hvd.Max, 0, torch.int64), (hvd.Product, 7, torch.int8)]
        start = unittest.mock.patch("mpix_sparse.torch._allreduce.start_allreduce", wraps=start_allreduce)
        for busy in ((), range(SIZE), (SIZE - 1,)):
            for op, size, dtype in calls:
                first = hvd.allreduce_async(torch.ones(3), op=hvd.Sum)
                if RANK not in busy:
                    hvd.synchronize(first)
                tensor = torch.ones(size, dtype=dtype)
                with start as nonblocking:
                    out = hvd.allreduce(tensor, op=op, prescale_factor=2)
                    self.assertEqual(int(tensor.sum().real), size)
                    self.assertIs(hvd.allreduce_(tensor, op=op), tensor)
                self.assertEqual(nonblocking.call_count > 0, RANK in busy)
                once = {"Sum": SIZE, "Product": 2 ** (SIZE - 1)}.get(op.name, 1)
                self.assertTrue(bool((out == 2 * once).all()), (op, size, dtype))
                self.assertTrue(bool((tensor == (SIZE if op is hvd.Sum else 1)).all()), (op, size, dtype))
                self.assertTrue(bool((hvd.synchronize(first) == SIZE).all()))

    def test_unchecked_is_nonblocking(self):
        """Calls that may be passed to MPI are nonblocking, since MPI's blocking ones do not match those."""
        start = unittest.mock.patch("mpix_sparse.torch._allreduce.start_allreduce", wraps=start_allreduce)
        with unittest.mock.patch.object(world(), "may_block", False), start as nonblocking:
            self.assertEqual(hvd.allreduce_(torch.ones(3), op=hvd.Sum).tolist(), [SIZE] * 3)
        self.assertEqual(nonblocking.call_count, 1)

    def test_spare_results(self):
        """The memory of small results is kept for the next call, whose type may be another."""
        _blocking._spare.clear()
        for size in (0, 5, 200, 50000, 20, 3):
            for dtype in (torch.float64, torch.int32):
                tensor = torch.ones(size, 2, dtype=dtype).to_sparse(1)
                works = [hvd.allreduce_async(tensor, op=hvd.Sum) for _ in range(2)]
                for out in (*map(hvd.synchronize, works), hvd.allreduce(tensor, op=hvd.Sum)):
                    self.assertEqual((out._nnz(), int(out.to_dense().sum())), (size, 2 * size * SIZE))
                    self.assertLessEqual(len(_blocking._spare), 2)
        self.assertGreaterEqual(len(_blocking._spare), 1)

    def test_sparse_blocking(self):
        """A rank without calls in flight blocks in the C library, which matches the calls of others."""
        total = sum(rows(rank).to_dense() for rank in range(SIZE))
        start = unittest.mock.patch.object(_allreduce, "_start_plain", side_effect=_allreduce._start_plain)
        for busy in ((), range(SIZE), (SIZE - 1,)):
            first = hvd.allreduce_async(torch.ones(3), op=hvd.Sum)
            if RANK not in busy:
                hvd.synchronize(first)
            with start as nonblocking:
                out = hvd.allreduce(rows(RANK), op=hvd.Sum)
            self.assertEqual(nonblocking.call_count, RANK in busy)
            self.assertTrue(torch.equal(out.to_dense(), total))
            self.assertTrue(bool((hvd.synchronize(first) == SIZE).all()))

    def test_sparse_shapes(self):
        """Several sparse and dense dimensions, indices that are not contiguous, and more or less elements
        than are copied without PyTorch."""
        for shape, sparse_dim, density in (
            ((300,), 1, 0.1),
            ((30, 40), 2, 0.1),
            ((5, 6, 7), 3, 0.1),
            ((6, 7, 2, 3), 2, 0.1),
            ((4, 0), 2, 0.1),
            ((300, 200), 2, 1.0),
            ((40000, 3), 1, 1.0),
        ):
            mine = [dense(rank, shape) if density < 1 else torch.ones(shape) for rank in range(SIZE)]
            for transposed in (False, True):
                tensor = mine[RANK].to_sparse(sparse_dim)
                if transposed:
                    indices = tensor._indices().t().contiguous().t()
                    tensor = torch.sparse_coo_tensor(indices, tensor._values(), shape)
                for op, divisor in ((hvd.Sum, 1), (hvd.Average, SIZE)):
                    out = hvd.allreduce(tensor, op=op)
                    self.assertTrue(out.is_coalesced() and out.sparse_dim() == sparse_dim)
                    self.assertTrue(torch.equal(out.to_dense(), sum(mine) / divisor))
                    self.assertTrue(torch.equal(out.clone().mul_(2).to_dense(), sum(mine) / divisor * 2))

    def test_no_such_tensor(self):
        """Errors of all ranks; torch_mismatches.py has those of one rank."""
        tensor = torch.ones(3, 4)
        wrong = [
            ("not list", lambda: hvd.allreduce([1, 2])),
            ("not list", lambda: hvd.allreduce_async_([1, 2])),
            ("not int", lambda: hvd.grouped_allreduce([tensor, 3])),
            ("not list", lambda: hvd.broadcast([1, 2], 0)),
            ("sparse_coo cannot be sent in a group", lambda: hvd.grouped_allreduce([tensor.to_sparse()])),
            ("torch.sparse_csr cannot", lambda: hvd.allreduce(tensor.to_sparse_csr())),
            ("is dense", lambda: hvd.sparse_allreduce_async(tensor)),
            ("'max' is not for bool", lambda: hvd.allreduce(tensor.bool(), op=hvd.Max)),
            ("dgc", lambda: hvd.allreduce(tensor, compression=hvd.Compression.dgc)),
            ("resolve_neg", lambda: mpix_sparse.allreduce(torch._neg_view(tensor))),
            ("not int", lambda: hvd.synchronize(3)),
            ("not Tensor", lambda: hvd.poll(tensor)),
        ]
        for sentence, call in wrong:
            with self.subTest(sentence), self.assertRaisesRegex(TypeError, sentence):
                call()

    def test_sparse_in_two_dimensions(self):
        total = sum(dense(rank) for rank in range(SIZE))
        out = hvd.allreduce(dense(RANK).to_sparse(), op=hvd.Sum)
        self.assertEqual((out.sparse_dim(), out.shape), (2, total.shape))
        self.assertTrue(torch.equal(out.to_dense(), total))

    def test_broadcast(self):
        root = SIZE - 1
        tensor = torch.full((3, 4), float(RANK)).t()
        self.assertTrue((hvd.broadcast(tensor, root) == root).all())
        self.assertTrue((tensor == RANK).all())
        self.assertIs(hvd.broadcast_(tensor, root), tensor)
        self.assertTrue((tensor == root).all())
        self.assertEqual(hvd.broadcast_object({"rank": RANK}, root), {"rank": root})
        with self.assertRaisesRegex(ValueError, f"the root is {SIZE}, and ranks are 0 to"):
            hvd.broadcast(tensor, SIZE)
        for call in (lambda obj: hvd.broadcast_object(obj, root), hvd.allgather_object):
            with self.assertRaisesRegex(ValueError, "cannot be pickled"):
                call((lambda: 0) if RANK == root else 1)

    def test_allgather(self):
        mine = torch.full((RANK, 3), float(RANK))
        out = hvd.allgather(mine)
        self.assertTrue(torch.equal(out, torch.cat([torch.full((r, 3), float(r)) for r in range(SIZE)])))
        self.assertEqual(hvd.allgather_object("x" * RANK), ["x" * rank for rank in range(SIZE)])
        hvd.barrier()

    def test_allgather_of_other_rows(self):
        """An error on the last rank reaches all ranks."""
        mine, last = torch.ones(2, 3), RANK == SIZE - 1
        for other in (torch.ones(2, 4), torch.ones(2, 3).double(), torch.ones(2, 3, 1)) if SIZE > 1 else ():
            with self.assertRaisesRegex(
                ValueError, "rank 0 calls allgather.rows of float.*, and rank . calls allgather.rows"
            ):
                hvd.allgather(other if last else mine)
        for other in (torch.tensor(1.0), mine.to_sparse()):
            with self.assertRaisesRegex(ValueError, "cannot be joined|has an error in its arguments"):
                hvd.allgather(other if last else mine)
        self.assertEqual(hvd.allgather(mine).shape, (2 * SIZE, 3))

    def test_signals(self):
        """A handler of a signal raises in a blocking call, which the C library completes."""

        def refuse(*_):
            raise TimeoutError("too late")

        for make in (lambda: torch.ones(3), lambda: torch.ones(3).to_sparse()):
            before = signal.signal(signal.SIGALRM, refuse)
            try:
                if RANK == 0:
                    signal.setitimer(signal.ITIMER_REAL, 0.3)
                    with self.assertRaisesRegex(TimeoutError, "too late"):
                        while True if SIZE == 1 else hvd.allreduce(make()) is None:
                            pass
                else:
                    time.sleep(0.8)
                    hvd.allreduce(make())
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            self.assertEqual(world().calls, hvd.broadcast_object(world().calls, 0))
            for number in range(1, 4):
                out = hvd.allreduce(number * make(), op=hvd.Sum)
                out = out.to_dense() if out.is_sparse else out
                self.assertEqual(out.tolist(), [number * SIZE] * 3)

    def test_threads(self):
        """Threads that make equal calls at once; which of them matches which does not matter."""
        for make in (lambda: torch.ones(7), lambda: torch.ones(7).to_sparse()):
            results = []

            def reduce(make=make, results=results):
                for _ in range(100):
                    out = hvd.allreduce(make(), op=hvd.Sum)
                    results.append((out.to_dense() if out.is_sparse else out).tolist())

            threads = [threading.Thread(target=reduce) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(results, [[SIZE] * 7] * 200)

    def test_wrong_factors(self):
        """Refused before the call, so that all ranks get an exception, and the tensor stays as it was."""
        last = RANK == SIZE - 1
        for factor, tensor in ((None, torch.ones(3)), ("x", torch.ones(3)), (0.5, torch.ones(3).int())):
            start = lambda *given, **named: hvd.allreduce_async(*given, **named).wait()  # noqa: E731
            for call in (hvd.allreduce, hvd.allreduce_, start):
                for how in ({"prescale_factor": factor}, {"postscale_factor": factor}):
                    with self.assertRaises(TypeError if last else ValueError):
                        call(tensor, op=hvd.Sum, **(how if last else {}))
                    self.assertTrue((tensor == 1).all() or not last)
                    tensor.fill_(1)
            with self.assertRaises(TypeError):
                hvd.grouped_allreduce([tensor], op=hvd.Sum, postscale_factor=factor)
        out = hvd.allreduce(torch.ones(2), op=hvd.Sum, postscale_factor=torch.tensor(0.5))
        self.assertEqual(out.tolist(), [SIZE / 2] * 2)

    def test_against_gloo(self):
        import torch.distributed as gloo

        if not gloo.is_available():
            self.skipTest("torch has no distributed")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = hvd.broadcast_object(free.getsockname()[1], 0)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
        gloo.init_process_group("gloo", rank=RANK, world_size=SIZE)
        for make in (dense, rows):
            theirs = make(RANK).coalesce() if make is rows else make(RANK)
            gloo.all_reduce(theirs)
            ours = hvd.allreduce(make(RANK), op=hvd.Sum)
            theirs, ours = (t.to_dense() if t.is_sparse else t for t in (theirs, ours))
            numpy.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        gloo.destroy_process_group()


if __name__ == "__main__":
    main()
