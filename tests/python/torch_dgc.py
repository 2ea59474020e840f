# SPDX-License-Identifier: BSD-3-Clause
"""Test Compression.dgc: training against the algorithm in NumPy for all ranks at once."""

import io
import math
import unittest

import numpy
from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse import _mpi  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
ROWS, COLUMNS = 40, 50
RATE = 0.1


def gradient_of(step, rank, weight):
    """The gradient of a rank's loss."""
    random = numpy.random.default_rng([step, rank])
    return weight * 0.1 + random.normal(size=(ROWS, COLUMNS))


class Model(torch.nn.Module):
    """A compressed parameter, a small one, and an embedding with sparse gradients."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.weight = torch.nn.Parameter(torch.zeros(ROWS, COLUMNS, dtype=torch.float64))
        self.bias = torch.nn.Parameter(torch.zeros(COLUMNS, dtype=torch.float64))
        self.words = torch.nn.Embedding(30, 200, sparse=True).double()


def train(model, steps, **how):
    """Train with given gradients. Returns the optimizer."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    how = {"sample_ratio": 1, "dense_below": 100, **how}
    optimizer = hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.dgc(**how))
    for step in range(steps):
        optimizer.zero_grad()
        gradient = gradient_of(step, RANK, model.weight.detach().numpy())
        loss = (model.weight * torch.from_numpy(gradient)).sum() + (model.bias * (step + 1)).sum()
        (loss + model.words(torch.tensor([step])).sum()).backward()
        optimizer.step()
    return optimizer


def begin(model, **how):
    """An optimizer with a warm-up, and thresholds estimated from samples."""
    how = {"ratio": 0.02, "momentum": 0.5, "warmup_epochs": 5, "sample_ratio": 0.3, "dense_below": 100, **how}
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    return hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.dgc(**how))


def go_on(model, optimizer, steps):
    """Train with gradients whose sums are exact in any order. Returns the losses."""
    losses = []
    for step in steps:
        optimizer.zero_grad()
        gradient = numpy.round(gradient_of(step, RANK, model.weight.detach().numpy()) * 64) / 64
        loss = (model.weight * torch.from_numpy(gradient)).sum() + (model.bias * (step + 1)).sum()
        loss = loss + model.words(torch.tensor([step])).sum()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def saved(value):
    """The state, saved to a file of this rank and loaded."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


def threshold_of(residual, ratio):
    """The magnitude of the k-th largest."""
    return numpy.sort(numpy.abs(residual).reshape(-1))[-max(1, int(ratio * residual.size + 0.5))]


def select(residual, velocity, threshold, masking):
    """The selected elements, and the residual."""
    chosen = numpy.abs(residual) >= threshold
    travels = numpy.where(chosen, residual, 0)
    residual[chosen] = 0
    if masking:
        velocity[chosen] = 0
    return travels


def expected(steps, ratio_at, momentum, clip=None, joint=False, masking=False):
    """The weight after some steps, computed from all ranks' states in one process; a common threshold is
    optional."""
    weight = numpy.zeros((ROWS, COLUMNS))
    velocity, residual = numpy.zeros((2, SIZE, ROWS, COLUMNS))
    for step in range(steps):
        total = 0
        for rank in range(SIZE):
            gradient = gradient_of(step, rank, weight)
            norm = numpy.linalg.norm(gradient)
            scale = 1 if clip is None else min(1, clip / math.sqrt(SIZE) / norm)
            velocity[rank] = momentum * velocity[rank] + scale * gradient
            residual[rank] += velocity[rank]
        thresholds = [threshold_of(residual if joint else mine, ratio_at(step)) for mine in residual]
        for rank in range(SIZE):
            total = total + select(residual[rank], velocity[rank], thresholds[rank], masking)
        weight -= RATE * total / SIZE
    return weight


class Dgc(unittest.TestCase):
    def check(self, model, weight):
        self.assertLess(float((model.weight.detach() - torch.from_numpy(weight)).abs().max()), 1e-12)
        for parameter in model.parameters():
            self.assertTrue(torch.equal(parameter.detach(), hvd.broadcast(parameter.detach(), 0)))

    def test_like_the_algorithm(self):
        for ratio, momentum in ((0.01, 0.9), (0.2, 0.5), (1.0, 0.0)):
            model = Model()
            train(model, 6, ratio=ratio, momentum=momentum)
            self.check(model, expected(6, lambda step: ratio, momentum))

    def test_masking(self):
        model = Model()
        train(model, 6, ratio=0.05, momentum=0.9, masking=True)
        self.check(model, expected(6, lambda step: 0.05, 0.9, masking=True))

    def test_one_threshold_for_a_group(self):
        model = Model()
        train(model, 6, ratio=0.02, momentum=0.7, group=_mpi.constant("COMM_WORLD"))
        self.check(model, expected(6, lambda step: 0.02, 0.7, joint=True))

    def test_clipping_and_warmup(self):
        ratios = [0.25, 0.25, 0.05, 0.05, 0.01, 0.01, 0.01]
        model = Model()
        how = {"warmup_epochs": 2, "steps_per_epoch": 2, "clip": 3.0}
        train(model, 7, ratio=0.01, momentum=0.9, **how)
        self.check(model, expected(7, lambda step: ratios[step], 0.9, 3.0))

    def test_small_ones_have_momentum_and_sparse_ones_none(self):
        model, plain = Model(), Model()
        before = hvd.broadcast(model.words.weight.detach(), 0)
        model.words.weight.data.copy_(before)
        train(model, 4, ratio=0.01, momentum=0.5)
        optimizer = torch.optim.SGD([plain.bias], lr=RATE, momentum=0.5)
        for step in range(4):
            plain.bias.grad = torch.full_like(plain.bias, step + 1)
            optimizer.step()
        self.assertTrue(torch.allclose(model.bias, plain.bias))
        self.assertTrue(model.words.weight.grad.is_sparse)
        moved = before - model.words.weight.detach()
        self.assertTrue(torch.allclose(moved[:4], torch.full_like(moved[:4], RATE)))
        self.assertEqual(float(moved[4:].abs().max()), 0)

    def test_few_elements_travel(self):
        model = Model()
        optimizer = train(model, 3, ratio=0.01, sample_ratio=0.5)
        self.assertLessEqual(int((model.weight.grad != 0).sum()), SIZE * (1.3 * 0.01 * ROWS * COLUMNS + 2))
        optimizer.zero_grad()
        if RANK == 0:
            model.weight.sum().backward()
        optimizer.step()
        self.assertGreater(int((model.weight.grad != 0).sum()), 0)

    def test_checkpoint(self):
        """Training that resumes from a state equals uninterrupted training."""
        whole, first, second = Model(), Model(), Model()
        losses = go_on(whole, begin(whole), range(8))
        optimizer = begin(first)
        self.assertEqual(go_on(first, optimizer, range(4)), losses[:4])
        model, state = saved([first.state_dict(), optimizer.state_dict()])
        second.load_state_dict(model)
        optimizer = begin(second)
        optimizer.load_state_dict(state)
        hvd.broadcast_optimizer_state(optimizer)
        self.assertEqual(go_on(second, optimizer, range(4, 8)), losses[4:])
        for mine, wanted in zip(second.parameters(), whole.parameters()):
            self.assertTrue(torch.equal(mine, wanted))

    def test_what_is_saved(self):
        model = Model()
        optimizer = begin(model, dense_below=1)
        added = torch.nn.Parameter(torch.zeros(9, dtype=torch.float64))
        optimizer.add_param_group({"params": [added]})
        (added.sum() * (RANK + 1)).backward()
        go_on(model, optimizer, range(3))
        kept = optimizer.state_dict()["mpix_sparse"]
        self.assertEqual([sorted(kept[i]) for i in (0, 2)], [["residual", "step", "velocity"], ["step"]])
        self.assertEqual(kept[0]["step"], 3)
        before = kept[0]["residual"].clone()
        hvd.broadcast_optimizer_state(optimizer)
        self.assertTrue(torch.equal(optimizer.state_dict()["mpix_sparse"][0]["residual"], before))
        plain = torch.optim.SGD([*model.parameters(), added], lr=1.0)
        optimizer.load_state_dict({**optimizer.state_dict(), "mpix_sparse": {0: {"step": 7}}})
        self.assertEqual(optimizer.state_dict()["mpix_sparse"][0]["step"], 7)
        wrong = {"mpix_sparse": {1: {"step": 1, "velocity": torch.zeros(3)}}}
        with self.assertRaisesRegex(
            ValueError, "velocity to be loaded for parameter 1 is of shape .3,., and"
        ):
            optimizer.load_state_dict({**optimizer.state_dict(), **wrong})
        other = torch.optim.SGD([{"params": model.parameters()}, {"params": [added]}], lr=1.0)
        other.load_state_dict(optimizer.state_dict())
        self.assertNotIn("mpix_sparse", hvd.DistributedOptimizer(plain).state_dict())

    def test_loading_all_or_nothing(self):
        """An invalid state of any parameter is refused before anything is loaded."""
        model = Model()
        optimizer = begin(model, dense_below=1)
        go_on(model, optimizer, range(2))
        before = optimizer.state_dict()
        numbers = sorted(before["mpix_sparse"])
        good, last = {"step": 9}, numbers[-1]
        shape = list(model.parameters())[last].shape
        groups = [{**group, "lr": 123.0} for group in before["param_groups"]]
        for kept, sentence in (
            (None, "must be a dict with numbers"),
            ({str(number): good for number in numbers}, "must be a dict with numbers"),
            ({0: good, last: None}, "is a NoneType; it must be a dict"),
            ({0: good, last: {}}, "the step to be loaded for parameter . is None"),
            ({0: good, last: {"step": -1}}, "is -1; it must be a whole number"),
            ({0: good, last: {"step": 1, "velocity": [1.0]}}, "the velocity .* is no dense tensor"),
            ({0: good, last: {"step": 1, "residual": torch.zeros(shape).to_sparse()}}, "no dense tensor"),
            ({0: good, last: {"step": 1, "residual": torch.zeros(3, 1, 1)}}, "the residual .* is of shape"),
        ):
            with self.assertRaisesRegex(ValueError, sentence):
                optimizer.load_state_dict({**before, "param_groups": groups, "mpix_sparse": kept})
            after = optimizer.state_dict()
            self.assertEqual(after["param_groups"], before["param_groups"])
            for i in numbers:
                self.assertEqual(after["mpix_sparse"][i]["step"], before["mpix_sparse"][i]["step"])

    def test_overflow(self):
        """A NaN on one rank affects only one step, with or without compression of the parameter."""
        for dense_below in (1, 10**9):
            parameter = torch.nn.Parameter(torch.zeros(6000))
            optimizer = torch.optim.SGD([parameter], lr=0.0)
            how = hvd.Compression.dgc(ratio=0.1, dense_below=dense_below)
            optimizer = hvd.DistributedOptimizer(optimizer, compression=how)
            for step in range(4):
                optimizer.zero_grad()
                gradient = torch.full((6000,), 2.0)
                gradient[7] = math.inf if step == 1 and RANK == 0 else 1.0
                parameter.backward(gradient)
                optimizer.step()
                self.assertEqual(bool(torch.isfinite(parameter.grad).all()), step != 1)

    def test_other_type(self):
        """A model that changes its type between steps by .to()."""
        model = torch.nn.Linear(100, 50)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        optimizer = hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.dgc(ratio=0.1))
        for dtype, moved in (torch.float32, 1), (torch.float64, 1.9), (torch.bfloat16, 2.71):
            model.to(dtype)
            optimizer.zero_grad(set_to_none=dtype == torch.bfloat16)
            (model.weight.sum() + model.bias.sum()).backward()
            optimizer.step()
            self.assertEqual((model.weight.grad.dtype, model.bias.grad.dtype), (dtype, dtype))
            self.assertGreater(int((model.weight.grad != 0).sum()), 0)
            self.assertLess(float((model.bias.grad.double() - moved).abs().max()), 0.01)

    def test_layout(self):
        """Gradients have the memory layout of their parameters, so PyTorch need not convert them."""
        for compression in (hvd.Compression.none, hvd.Compression.dgc(1.0, momentum=0.0, dense_below=0)):
            layer = torch.nn.Conv2d(3, 4, 2).double().to(memory_format=torch.channels_last)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
            optimizer = hvd.DistributedOptimizer(optimizer, compression=compression)
            for _ in range(3):
                optimizer.zero_grad()
                wanted = torch.arange(48.0, dtype=torch.float64).view(4, 3, 2, 2)
                (layer.weight * wanted * (RANK + 1)).sum().backward()
                optimizer.step()
                self.assertEqual(layer.weight.grad.stride(), layer.weight.stride())
                self.assertTrue(torch.equal(layer.weight.grad, wanted * (SIZE + 1) / 2))

    def test_half(self):
        parameter = torch.nn.Parameter(torch.ones(5000, dtype=torch.bfloat16))
        optimizer = torch.optim.SGD([parameter], lr=1.0)
        optimizer = hvd.DistributedOptimizer(optimizer, compression=hvd.Compression.dgc(ratio=0.01))
        (parameter[:5] * 4).sum().backward()
        optimizer.step()
        self.assertEqual(parameter.dtype, torch.bfloat16)
        self.assertEqual(parameter[:6].tolist(), [-3, -3, -3, -3, -3, 1])

    def test_wrong(self):
        dgc = hvd.Compression.dgc
        for how in (
            {"ratio": 0},
            {"ratio": "a"},
            {"sample_ratio": 2},
            {"momentum": 1},
            {"warmup_epochs": -1},
            {"steps_per_epoch": 0},
            {"clip": 0},
            {"dense_below": None},
        ):
            (name,) = how
            with self.assertRaisesRegex(ValueError, f"{name} is {how[name]!r}; it must be a number"):
                dgc(**how)
        with self.assertRaisesRegex(TypeError, "group must be None or a communicator"):
            dgc(group="all")
        self.assertEqual((dgc(0.05).ratio, dgc(0.05).wire_values, dgc(0.05).dtype), (0.05, "full", None))
        with self.assertRaisesRegex(ValueError, "for a DistributedOptimizer"):
            hvd.allreduce(torch.ones(3), compression=dgc())
        model = torch.nn.Linear(100, 100)
        fast = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
        for kind in (fast, torch.optim.Adam(model.parameters())):
            with self.assertRaisesRegex(ValueError, "has a momentum of 0.9; .* must have none"):
                hvd.DistributedOptimizer(kind, compression=dgc())
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        with self.assertRaisesRegex(TypeError, "must be Compression.none, bf16, fp16 or dgc"):
            hvd.DistributedOptimizer(optimizer, compression=dgc)
        optimizer = hvd.DistributedOptimizer(optimizer, compression=dgc(), op=hvd.Max)
        with self.assertRaisesRegex(ValueError, "has a momentum of 0.5"):
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))], "momentum": 0.5})
        model(torch.ones(1, 100)).sum().backward()
        with self.assertRaisesRegex(ValueError, "op Average or Sum, not Max"):
            optimizer.step()


if __name__ == "__main__":
    main()
