# SPDX-License-Identifier: BSD-3-Clause
"""Test DistributedOptimizer: training on several ranks equals training on the joined batch, even if ranks
have no gradients of some parameters."""

import concurrent.futures
import collections
import contextlib
import copy
import os
import time
import unittest
import unittest.mock

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse.torch import _reducer  # noqa: E402

Pair = collections.namedtuple("Pair", "first second")
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
WORDS, WIDTH = 400, 16


class Model(torch.nn.Module):
    """An embedding far larger than the rest, a part that only some ranks use, and an unused part."""

    def __init__(self, sparse=True):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH, sparse=sparse)
        self.inner = torch.nn.Linear(WIDTH, WIDTH)
        self.extra = torch.nn.Linear(WIDTH, WIDTH)
        self.rare = torch.nn.Embedding(WORDS, WIDTH, sparse=sparse)
        self.never = torch.nn.Linear(2, 2)
        self.outer = torch.nn.Linear(WIDTH, 3)

    def forward(self, text, use_extra):
        hidden = torch.tanh(self.inner(self.words(text).mean(1)))
        if use_extra:
            hidden = self.extra(hidden) + self.rare(text).mean(1)
        return self.outer(hidden)


def batch(step, rank):
    """Sentences, classes, and whether the rank uses the part `extra`: only rank 0 does, from step 2 on."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    text = torch.randint(0, WORDS, (6, 5), generator=generator)
    return text, torch.randint(0, 3, (6,), generator=generator), rank == 0 and step >= 2


def loss_of(model, step, rank):
    text, classes, use_extra = batch(step, rank)
    return torch.nn.functional.cross_entropy(model(text, use_extra), classes)


def make_model(sparse=True):
    torch.manual_seed(7)
    return Model(sparse).double()


def make_optimizer(model, kind):
    return kind(model.parameters(), lr=0.5)


def train_alone(model, steps, kind=torch.optim.SGD, passes=1):
    """Train on the joined batch of all ranks, with the mean of their losses."""
    optimizer = make_optimizer(model, kind)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(passes):
            sum(loss_of(model, step * passes + part, rank) for rank in range(SIZE)).div(SIZE).backward()
        optimizer.step()
    return model


def train_together(model, steps, kind=torch.optim.SGD, passes=1, **how):
    optimizer = make_optimizer(model, kind)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), backward_passes_per_step=passes, **how
    )
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(passes):
            loss_of(model, step * passes + part, RANK).backward()
        optimizer.step()
    return model


fill = _reducer.ParameterSlot.fill


def filled_slowly(slot, prescale):
    """Let other threads run in between."""
    time.sleep(0.002)
    fill(slot, prescale)


class Trained(unittest.TestCase):
    def same(self, ours, theirs, tolerance=1e-10):
        """Orders of addition differ, and Adagrad amplifies a gradient that nearly cancels."""
        for (name, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters()):
            off = float((mine - other).abs().max())
            self.assertLessEqual(off, tolerance, name)
            self.assertTrue(
                torch.equal(mine.data, hvd.broadcast(mine.data, 0)), f"{name} differs between ranks"
            )


class Optimizer(Trained):
    def test_like_the_joined_batch(self):
        for sparse in (True, False):
            for kind in (torch.optim.SGD, torch.optim.Adagrad):
                with self.subTest(sparse=sparse, kind=kind):
                    ours = train_together(make_model(sparse), 8, kind)
                    self.same(ours, train_alone(make_model(sparse), 8, kind))
                    self.assertIsNone(ours.never.weight.grad)
                    self.assertEqual(ours.words.weight.grad.is_sparse, sparse)
                    self.assertEqual(ours.rare.weight.grad.is_sparse, sparse)

    def test_small_ones_travel_together(self):
        model = train_together(make_model(False), 3)
        layers = [model.inner.weight, model.inner.bias, model.outer.weight, model.outer.bias]
        places = [layer.grad.data_ptr() for layer in layers]
        self.assertLess(max(places) - min(places), sum(p.numel() * 8 for p in model.parameters()))

    def test_gradients_with_a_graph(self):
        weight = torch.nn.Parameter(torch.ones(4, dtype=torch.float64))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.5))
        for _ in range(2):
            optimizer.zero_grad()
            (weight**2).sum().backward(create_graph=True)
            optimizer.step()
        self.assertTrue(torch.equal(weight.detach(), torch.zeros(4, dtype=torch.float64)))

    def test_communication_seconds(self):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5))
        self.assertEqual(optimizer.communication_seconds, 0)
        begin = time.perf_counter()
        loss_of(model, 0, RANK).backward()
        optimizer.step()
        self.assertGreater(optimizer.communication_seconds, 0)
        self.assertLess(optimizer.communication_seconds, time.perf_counter() - begin)

    def test_small_parameters_share_calls(self):
        """Without any argument, neighbours of one type are fused up to GROUP_BYTES."""
        for limit, calls in (_reducer.GROUP_BYTES, 2), (1000, 6):
            parameters = [torch.nn.Parameter(torch.zeros(100)) for _ in range(10)]
            parameters.append(torch.nn.Parameter(torch.zeros(3, dtype=torch.float64)))
            with unittest.mock.patch.object(_reducer, "GROUP_BYTES", limit):
                optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1))
                for step in range(3):
                    start = _reducer.Plan.start
                    with unittest.mock.patch.object(_reducer.Plan, "start", autospec=True) as counted:
                        counted.side_effect = start
                        optimizer.zero_grad()
                        sum((i + RANK) * each.sum() for i, each in enumerate(parameters)).backward()
                        optimizer.step()
                    self.assertEqual(counted.call_count, calls)
            for i, each in enumerate(parameters):
                self.assertTrue((each == -3 * (i + (SIZE - 1) / 2)).all())

    def test_passes_and_predivide(self):
        ours = train_together(make_model(), 4, passes=3, gradient_predivide_factor=2.0)
        self.same(ours, train_alone(make_model(), 4, passes=3))

    def test_sparse_as_dense(self):
        ours = train_together(make_model(), 4, sparse_as_dense=True)
        self.same(ours, train_alone(make_model(), 4))
        self.assertFalse(ours.words.weight.grad.is_sparse)

    def test_sparse_views(self):
        ours = train_together(make_model(), 5, sparse_views=True, gradient_predivide_factor=2.0)
        self.same(ours, train_alone(make_model(), 5))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5), sparse_views=True)
        kept = []
        for step in range(5):
            optimizer.zero_grad(set_to_none=True)
            loss_of(ours, step, RANK).backward()
            optimizer.step()
            gradient = ours.words.weight.grad
            kept.append((gradient, gradient.to_dense().clone()))
        for gradient, numbers in kept:
            self.assertTrue(gradient.is_coalesced())
            self.assertTrue(torch.equal(gradient.to_dense(), numbers))

    def test_compression(self):
        for compression in (hvd.Compression.bf16, hvd.Compression.fp16):
            ours = train_together(make_model().float(), 4, compression=compression)
            self.same(ours, train_alone(make_model().float(), 4), 0.02)

    @unittest.skipIf(SIZE == 1, "one rank sends nothing")
    def test_bytes_between_nodes(self):
        """Values of 16 bits take half the bytes, also in dense gradients, as the report says."""

        def sent(compression):
            weight = torch.nn.Parameter(torch.ones(50000))
            optimizer = torch.optim.SGD([weight], lr=1)
            optimizer = hvd.DistributedOptimizer(optimizer, [("weight", weight)], compression=compression)
            weight.sum().backward()
            optimizer.step()
            return hvd.report().bytes_sent

        nodes = {"MPIX_SPARSE_NODES": str(SIZE)}
        with unittest.mock.patch.dict(os.environ, nodes):
            hvd.shutdown()
            hvd.init()
            ring = 2 * 4 * 50000 * (SIZE - 1) / SIZE  # bytes of 32-bit values
            doubling = ring if SIZE < 3 else 2 * 4 * 50000  # a slow machine may choose recursive doubling
            for compression in (hvd.Compression.bf16, hvd.Compression.fp16):
                self.assertLess(sent(compression), 0.51 * doubling)
        with unittest.mock.patch.dict(os.environ, nodes | {"MPIX_SPARSE_SCHEME": "balanced"}):
            hvd.shutdown()
            hvd.init()
            for compression in (hvd.Compression.bf16, hvd.Compression.fp16):
                self.assertAlmostEqual(sent(compression) / ring, 0.5, delta=0.01)
        with unittest.mock.patch.dict(os.environ, nodes | {"MPIX_SPARSE_SCHEME": "dense"}):
            hvd.shutdown()
            hvd.init()
            whole = sent(hvd.Compression.none)
            for compression in (hvd.Compression.bf16, hvd.Compression.fp16):
                self.assertEqual(2 * sent(compression), whole)
                self.assertEqual(hvd.report().scheme, "dense")
        hvd.shutdown()
        hvd.init()

    def test_values_are_rounded(self):
        """Wherever the ranks are, and whichever scheme runs, in dense and in sparse gradients."""
        fine = 1 + 2**-12  # has no representation in 16 bits
        for compression in (hvd.Compression.bf16, hvd.Compression.fp16):
            for sparse in (False, True):
                words = torch.nn.Embedding(50, 4, sparse=sparse)
                optimizer = torch.optim.SGD(words.parameters(), lr=1)
                how = {"op": hvd.Sum, "compression": compression}
                optimizer = hvd.DistributedOptimizer(optimizer, words.named_parameters(), **how)
                (words(torch.arange(20)).sum() * fine).backward()
                optimizer.synchronize()
                gradient = words.weight.grad.to_dense() if sparse else words.weight.grad
                self.assertEqual(gradient[:20].unique().tolist(), [SIZE])

    def test_zeroed_and_not_set_to_none(self):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), op=hvd.Average)
        for step in range(5):
            loss_of(model, step, RANK).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=step % 2 == 0)
        self.same(model, train_alone(make_model(), 5))

    def test_clipping(self):
        ours, theirs = make_model(False), make_model(False)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5), op=hvd.Sum)
        alone = torch.optim.SGD(theirs.parameters(), lr=0.5)
        for step in range(2, 5):
            optimizer.zero_grad()
            alone.zero_grad()
            loss_of(ours, step, RANK).backward()
            sum(loss_of(theirs, step, rank) for rank in range(SIZE)).backward()
            optimizer.synchronize()
            for model in (ours, theirs):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            with optimizer.skip_synchronize() if step == 3 else contextlib.nullcontext():
                optimizer.step()
            alone.step()
        self.same(ours, theirs)

    def test_closure(self):
        model = make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5))
        for step in range(5):

            def closure():
                optimizer.zero_grad()
                loss = loss_of(model, step, RANK)
                loss.backward()
                return loss

            self.assertTrue(optimizer.step(closure) > 0)
        self.same(model, train_alone(make_model(), 5))

    def test_is_an_optimizer(self):
        model = make_model()
        base = torch.optim.SGD(model.parameters(), lr=0.5)
        optimizer = hvd.DistributedOptimizer(base, named_parameters=model.named_parameters())
        self.assertIsInstance(optimizer, torch.optim.SGD)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
        loss_of(model, 0, RANK).backward()
        optimizer.step()
        schedule.step()
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.05)
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    def test_one_after_another(self):
        """A deleted optimizer leaves no hooks, even with pending work."""
        ours = make_model(False)
        for begin in (0, 2, 4):
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5))
            for step in (begin, begin + 1):
                optimizer.zero_grad()
                loss_of(ours, step, RANK).backward()
                optimizer.step()
            del optimizer
        loss_of(ours, 9, RANK).backward()
        loss_of(ours, 9, RANK).backward()
        self.same(ours, train_alone(make_model(False), 6))

    @unittest.mock.patch("mpix_sparse.torch._reducer.GROUP_BYTES", 0)
    @unittest.mock.patch("mpix_sparse.torch._reducer.ParameterSlot.fill", filled_slowly)
    def test_backward_passes_in_threads(self):
        """Use several layers, as PyTorch does for a model on several devices: gradients arrive at the same
        time."""
        layers = [torch.nn.Linear(300, 300, bias=False) for _ in range(4)]
        parameters = [layer.weight for layer in layers]
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0))
        for step in range(6):
            optimizer.zero_grad()
            losses = [weight.sum() * (RANK + i + step) for i, weight in enumerate(parameters)]
            with concurrent.futures.ThreadPoolExecutor(len(losses)) as threads:
                list(threads.map(torch.Tensor.backward, losses))
            optimizer.step()
            for i, weight in enumerate(parameters):
                self.assertTrue((weight.grad == (SIZE - 1) / 2 + i + step).all())

    def test_parameters_added_later(self):
        ours, theirs = make_model(), make_model()
        first = lambda model: [*model.words.parameters(), *model.inner.parameters()]  # noqa: E731
        later = lambda model: [*model.outer.parameters(), *model.rare.parameters()]  # noqa: E731
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(first(ours), lr=0.5))
        alone = torch.optim.SGD(first(theirs), lr=0.5)
        for step in range(6):
            if step == 2:
                for each, model in ((optimizer, ours), (alone, theirs)):
                    each.add_param_group({"params": later(model), "lr": 0.25})
            ours.zero_grad(set_to_none=True)
            theirs.zero_grad(set_to_none=True)
            loss_of(ours, step, RANK).backward()
            sum(loss_of(theirs, step, rank) for rank in range(SIZE)).div(SIZE).backward()
            optimizer.step()
            alone.step()
        self.same(ours, theirs)

    def test_wrong(self):
        model = make_model(False)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5))
        loss_of(model, 0, RANK).backward()
        optimizer.step()
        optimizer.zero_grad()
        loss_of(model, 0, RANK).backward()
        with self.assertRaisesRegex(RuntimeError, "in flight"):
            optimizer.zero_grad()
        with self.assertRaisesRegex(RuntimeError, "came 2 times in a step of 1"):
            loss_of(model, 0, RANK).backward()
        optimizer.step()
        base = torch.optim.SGD(model.parameters(), lr=0.5)
        with self.assertRaisesRegex(ValueError, "lacks parameter"):
            hvd.DistributedOptimizer(base, named_parameters=list(model.named_parameters())[:1])
        with self.assertRaisesRegex(ValueError, "must be None or a ProcessSet"):
            hvd.DistributedOptimizer(base, process_set=3)
        with self.assertRaisesRegex(ValueError, "reduced twice"):
            hvd.DistributedOptimizer(optimizer)
        with self.assertRaisesRegex(TypeError, "optimizer of PyTorch is needed, not int"):
            hvd.DistributedOptimizer(3)
        for passes in (0, 1.5):
            with self.assertRaisesRegex(ValueError, "must be 1 or more, and whole"):
                hvd.DistributedOptimizer(base, backward_passes_per_step=passes)
        for factor in (0, -1.0, float("nan"), "2"):
            with self.assertRaisesRegex(ValueError, "must be a number above 0"):
                hvd.DistributedOptimizer(base, gradient_predivide_factor=factor)
        with self.assertRaisesRegex(TypeError, "pairs of a name and a parameter"):
            hvd.DistributedOptimizer(base, named_parameters=model.parameters())
        with self.assertRaisesRegex(ValueError, "needs op Average"):
            hvd.DistributedOptimizer(base, op=hvd.Sum, gradient_predivide_factor=2.0)

    def test_other_parameters(self):
        """The last rank has another order, another shape, or fewer parameters: all ranks get an exception."""
        for there, shape in (("ba", (3, 3)), ("ab", (9,)), ("a", (3, 3))) if SIZE > 1 else ():
            last = RANK == SIZE - 1
            named = [
                (name, torch.nn.Parameter(torch.ones(shape if last else (3, 3))))
                for name in (there if last else "ab")
            ]
            optimizer = torch.optim.SGD([parameter for _, parameter in named], lr=0.5)
            optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=named)
            sum(parameter.sum() for _, parameter in named).backward()
            with self.assertRaisesRegex(
                ValueError, "a parameter of the optimizer is .* here, and .* on rank"
            ):
                optimizer.step()

    def test_broadcast_state(self):
        root = SIZE - 1
        torch.manual_seed(RANK)
        model = Model().double()
        hvd.broadcast_parameters(model.state_dict(), root_rank=root)
        kind = torch.optim.Adagrad
        optimizer = kind(model.parameters(), lr=0.1 * (RANK + 1))
        if RANK == root:
            loss_of(model, 0, RANK).backward()
            optimizer.step()
        hvd.broadcast_parameters(list(model.named_parameters()), root_rank=root)
        if RANK == root:
            optimizer.param_groups[0]["pair"] = Pair(torch.ones(2), 5)
        hvd.broadcast_optimizer_state(optimizer, root_rank=root)
        pair = optimizer.param_groups[0]["pair"]
        self.assertEqual((type(pair), pair.first.tolist(), pair.second), (Pair, [1, 1], 5))
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.1 * SIZE)
        for parameter in model.parameters():
            for value in (parameter, optimizer.state[parameter]["sum"]):
                self.assertTrue(torch.equal(value, hvd.broadcast(value.detach(), root)))


if __name__ == "__main__":
    main()
